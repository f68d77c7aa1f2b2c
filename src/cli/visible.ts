// Controls, line and paragraph separators, and what turns the direction of writing; not the joiners that emoji need.
const unseen = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/**
 * Text from elsewhere, fit for a terminal: what would steer it stands there as `\u001b`. JSON stays the same JSON,
 * since such characters stand only in its strings.
 */
export function visible(text: string): string {
  return text.replace(unseen, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
