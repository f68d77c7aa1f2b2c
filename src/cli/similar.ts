/** A known name with the same letters, or whose words each differ by at most a quarter: wrong guesses are worse than none. */
export function findSimilar(name: string, known: readonly string[]): string | undefined {
  const words = (text: string) => text.split(/[-_]+/)
  const letters = (text: string) => [...words(text).join('')].sort().join('')
  const isSimilar = (word: string, other = '') => isWithin(Math.floor(other.length / 4), word, other)
  return known.find(other => {
    const [given, expected] = [words(name), words(other)]
    const areSimilar =
      given.length === expected.length && given.every((word, index) => isSimilar(word, expected[index]))
    return areSimilar || letters(name) === letters(other)
  })
}

/** Whether inserting, deleting or replacing at most this many characters turns `a` into `b`. */
function isWithin(edits: number, a: string, b: string): boolean {
  if (a === '') return b.length <= edits
  const [restOfA, restOfB] = [a.slice(1), b.slice(1)]
  if (a[0] === b[0]) return isWithin(edits, restOfA, restOfB)
  const isLess = (a: string, b: string) => isWithin(edits - 1, a, b)
  return edits > 0 && (isLess(restOfA, b) || isLess(a, restOfB) || isLess(restOfA, restOfB))
}
