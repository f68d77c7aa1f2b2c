// @ts-check

/**
 * Set by swagger-ui-dist.
 * @type {(options: Record<string, unknown>) => void}
 */
const swaggerUi = Reflect.get(window, 'SwaggerUIBundle')

/**
 * The part of Swagger UI's plugin interface that we use.
 * @typedef {(props: { content: unknown }) => unknown} Component
 * @typedef {object} System
 * @property {(name: string, asContainer: boolean) => Component} getComponent
 * @property {{ createElement: (type: unknown, props: unknown, ...children: unknown[]) => unknown }} React
 * @typedef {{ servers: { url: string }[] }} Spec
 */

const dark = matchMedia('(prefers-color-scheme: dark)')
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', paint)
paint()

/** Without this, Swagger UI rounds integers beyond 2^53. */
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
 * Indented JSON with exact numbers. Undefined if it is not JSON, or the browser lacks JSON.rawJSON.
 * @param {unknown} content
 * @returns {string | undefined}
 */
function indented(content) {
  /** @type {((digits: string) => unknown) | undefined} */
  const rawJson = Reflect.get(JSON, 'rawJSON')
  if (typeof content !== 'string' || !rawJson) return undefined
  /** @type {(key: string, value: unknown, context?: { source: string }) => unknown} */
  const keepDigits = (_key, value, context) => (typeof value === 'number' && context ? rawJson(context.source) : value)
  try {
    return JSON.stringify(JSON.parse(content, keepDigits), null, 2)
  } catch {
    return undefined
  }
}

/** The content security policy lets this page call only its own origin. */
const ownServers = {
  statePlugins: {
    spec: {
      wrapActions: {
        /** @param {(spec: Spec) => unknown} original */
        updateJsonSpec: original => (/** @type {Spec} */ spec) =>
          original({ ...spec, servers: spec.servers.filter(isOwn) }),
      },
    },
  },
}

/** @param {{ url: string }} server */
function isOwn({ url }) {
  return new URL(url, location.href).origin === location.origin
}

swaggerUi({
  domNode: document.getElementById('reference'),
  url: 'openapi.json',
  deepLinking: true,
  plugins: [exactResponses, ownServers],
  // By default it sends the document's address to an external validator.
  validatorUrl: null,
})
