/** A link of an answer (RFC 8288), its address resolved. */
export interface Link {
  /** In lower case: `next`, `deprecation`, `successor-version`. */
  readonly rel: string
  readonly href: string
}

const oneLink = /<([^>]*)>((?:[^",]|"(?:[^"\\]|\\.)*")*)/g
const oneParameter = /;\s*([^\s=;"]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*)))?/g

/** The links of a Link header, one for each relation. A link whose address is none is left out. */
export function readLinks(header: string | null, base: string): Link[] {
  return [...(header ?? '').matchAll(oneLink)].flatMap(([, address = '', parameters = '']) => {
    const href = resolve(address, base)
    return href === undefined ? [] : relationsIn(parameters).map(rel => ({ rel, href }))
  })
}

/** Of several rel parameters the first counts; it may hold several relations. */
function relationsIn(parameters: string): string[] {
  const [, , quoted, bare] =
    [...parameters.matchAll(oneParameter)].find(([, name]) => name?.toLowerCase() === 'rel') ?? []
  return (quoted ?? bare ?? '')
    .toLowerCase()
    .split(/\s+/)
    .filter(rel => rel !== '')
}

/** Not URL.canParse or URL.parse: they are younger than Node 20. */
function resolve(address: string, base: string): string | undefined {
  try {
    return new URL(address, base).href
  } catch {
    return undefined
  }
}
