// @ts-check

/**
 * swagger-ui-dist puts it here.
 * @type {(options: Record<string, unknown>) => void}
 */
const swaggerUi = Reflect.get(window, 'SwaggerUIBundle')

/**
 * What Swagger UI hands to its plugins, as far as we use it.
 * @typedef {(props: { content: unknown }) => unknown} Component
 * @typedef {object} System
 * @property {(name: string, asContainer: boolean) => Component} getComponent
 * @property {{ createElement: (type: unknown, props: unknown, ...children: unknown[]) => unknown }} React
 */

const dark = matchMedia('(prefers-color-scheme: dark)')
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', paint)
paint()

/** Swagger UI would round the integers beyond 2^53 that it shows. */
const exactResponses = {
  wrapComponents: {
    /**
     * @param {Component} Original
     * @param {System} system
     * @returns {Component}
     */
    responseBody:
      (Original, { React, getComponent }) =>
      props => {
        const text = indented(props.content)
        if (text === undefined) return React.createElement(Original, props)
        const code = getComponent('HighlightCode', true)
        const options = { language: 'json', fileName: 'response.json', downloadable: true, canCopy: true }
        const title = React.createElement('h5', null, 'Response body')
        return React.createElement('div', null, title, React.createElement(code, options, text))
      },
  },
}

/**
 * JSON on several lines, its numbers digit for digit; undefined where it is no JSON, or the browser has no way.
 * @param {unknown} content
 * @returns {string | undefined}
 */
function indented(content) {
  /** @type {((digits: string) => unknown) | undefined} */
  const rawJson = Reflect.get(JSON, 'rawJSON')
  if (typeof content !== 'string' || !rawJson) return undefined
  /** @type {(key: string, value: unknown, context?: { source: string }) => unknown} */
  const keepDigits = (_key, value, context) =>
    typeof value === 'number' && context ? rawJson(context.source) : value
  try {
    return JSON.stringify(JSON.parse(content, keepDigits), null, 2)
  } catch {
    return undefined
  }
}

swaggerUi({
  domNode: document.getElementById('reference'),
  url: 'openapi.json',
  deepLinking: true,
  plugins: [exactResponses],
  // The default sends the document's address to a validator elsewhere.
  validatorUrl: null,
})
