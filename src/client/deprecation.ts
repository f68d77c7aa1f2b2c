import { type Link, readLinks } from './links.ts'

export type OperationName = 'listPets' | 'createPet' | 'getPet'

/** An answer said that its operation is deprecated. */
export interface DeprecationNotice {
  readonly operation: OperationName
  /** Since when, or from when on; absent where the server gave no date. */
  readonly deprecation?: Date
  /** When the operation goes away. */
  readonly sunset?: Date
  /** Where to read on (`deprecation`), and what to use instead (`successor-version`). */
  readonly links: readonly Link[]
}

/** Reads Deprecation (RFC 9745) and Sunset (RFC 8594); undefined where an answer has neither. */
export function readDeprecation(
  operation: OperationName,
  headers: Headers,
  url: string,
): DeprecationNotice | undefined {
  const announced = headers.get('deprecation')
  const ends = headers.get('sunset')
  if (announced === null && ends === null) return undefined
  const deprecation = dateOf(announced)
  const sunset = dateOf(ends)
  return {
    operation,
    ...(deprecation && { deprecation }),
    ...(sunset && { sunset }),
    links: readLinks(headers.get('link'), url),
  }
}

/** `@1794700800` or an HTTP date; the older `true` says no date. */
function dateOf(text: string | null): Date | undefined {
  const [, seconds] = /^@(-?\d{1,12})$/.exec(text ?? '') ?? []
  const date = new Date(seconds === undefined ? (text ?? '') : Number(seconds) * 1_000)
  return Number.isNaN(date.getTime()) ? undefined : date
}
