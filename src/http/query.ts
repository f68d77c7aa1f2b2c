import { cannotRead, type Field, unknownNames } from '../field.ts'

/** The query parameters of one request. Whatever is wrong with them is gathered, so that one answer tells it all. */
export interface Query {
  /** The parameter's value; undefined where it was not sent, or is a problem. */
  read<T>(name: string, field: Field<T>): T | undefined
  readonly problems: readonly string[]
}

const nothingSent: Query = { read: () => undefined, problems: [] }

/** With `only`, a parameter of any other name is a problem; without it, such a parameter is ignored. */
export function parseQuery(text: string, only?: readonly string[]): Query {
  if (text === '') return nothingSent
  const sent = new URLSearchParams(text)
  const problems = only ? unknownNames('parameter', [...new Set(sent.keys())], only) : []
  return {
    read(name, field) {
      const values = sent.getAll(name)
      const [value] = values
      if (value === undefined) return undefined
      if (values.length > 1) {
        problems.push(`${name} is given ${values.length} times: expected it once`)
        return undefined
      }
      const read = field.read(value)
      if (read === undefined) problems.push(cannotRead(name, value, field.expected))
      return read
    },
    problems,
  }
}
