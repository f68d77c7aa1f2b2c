import { type Field, invalid, unknownNames } from '../field.ts'

/** The query parameters of one request. Whatever is wrong with them is gathered, so that one answer tells it all. */
export interface Query {
  /** As it was sent. */
  readonly text: string
  /** The parameter's value; undefined where it was not sent, or is a problem. */
  read<T>(name: string, field: Field<T>): T | undefined
  readonly problems: readonly string[]
}

const nothingSent: Query = { text: '', read: () => undefined, problems: [] }

/** With `only`, a parameter of any other name is a problem; without it, such a parameter is ignored. */
export function parseQuery(text: string, only?: readonly string[]): Query {
  if (text === '') return nothingSent
  // Taken apart only when somebody reads it: a page that is still true is found by the text alone.
  let sent: URLSearchParams | undefined
  const parameters = () => {
    sent ??= new URLSearchParams(text)
    return sent
  }
  const problems = only ? unknownNames('parameter', [...new Set(parameters().keys())], only) : []
  return {
    text,
    read(name, field) {
      const values = parameters().getAll(name)
      const [value] = values
      if (value === undefined) return undefined
      if (values.length > 1) {
        problems.push(`${name} is given ${values.length} times: expected it once`)
        return undefined
      }
      const read = field.read(value)
      if (read === undefined) problems.push(invalid(name, value, field))
      return read
    },
    problems,
  }
}
