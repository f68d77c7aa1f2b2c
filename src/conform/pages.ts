import type { Answer } from './probe.ts'

/**
 * The path of the next page, where a Link header has one. Only its query is taken: an absolute link may lead to
 * another host than the one that is checked, and the key is not for it.
 */
export function nextPage({ headers }: Answer): string | undefined {
  const target = linkTo(headers.get('link'), 'next')
  const query = target?.indexOf('?') ?? -1
  return target === undefined || query === -1 ? undefined : `/pets${target.slice(query)}`
}

/** The target of the link of this relation (RFC 8288). */
export function linkTo(header: string | null, relation: string): string | undefined {
  for (const [, target, parameters = ''] of (header ?? '').matchAll(/<([^>]*)>([^<]*)/g)) {
    const [, quoted, bare] = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,]+))/i.exec(parameters) ?? []
    if ((quoted ?? bare ?? '').toLowerCase().split(/\s+/).includes(relation)) return target
  }
  return undefined
}

export function queryOf(path: string): URLSearchParams {
  return new URLSearchParams(path.slice(path.indexOf('?') + 1))
}
