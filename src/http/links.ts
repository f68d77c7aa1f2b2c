/** The prefix that every operation stands under: the interface's major version. */
export const versionPrefix = '/v1'

/** Makes addresses for Link and Location: relative to the host, or under the public base address. */
export interface Links {
  /** For a path under the version prefix: `/pets/1`. */
  api(path: string): string
  /** For a path beside it: `/openapi.json`. */
  site(path: string): string
}

/** The base address ends in the version prefix, as the interface writes it. */
export function createLinks(publicUrl?: string | undefined): Links {
  const site = publicUrl === undefined ? '' : publicUrl.slice(0, -versionPrefix.length)
  return {
    api: path => `${site}${versionPrefix}${path}`,
    site: path => `${site}${path}`,
  }
}
