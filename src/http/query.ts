import { type Field, invalid, unknownNames } from '../field.ts'

/** Query parameters. Problems are collected, so that one response names them all. */
export class Query {
  readonly text: string
  readonly problems: string[] = []
  #parameters: URLSearchParams | undefined

  constructor(text: string) {
    this.text = text
  }

  /** The parameter's value; undefined if it was not sent, or is a problem. */
  read<T>(name: string, field: Field<T>): T | undefined {
    const [text, ...others] = this.#parsed().getAll(name)
    if (text === undefined) return undefined
    if (others.length > 0) {
      this.problems.push(`${name} occurs ${others.length + 1} times: expected once`)
      return undefined
    }
    const value = field.read(text)
    if (value === undefined) this.problems.push(invalid(name, text, field))
    return value
  }

  refuseUnknown(known: readonly string[]): void {
    this.problems.push(...unknownNames('parameter', [...new Set(this.#parsed().keys())], known))
  }

  /** Parsed on first use: a cached page is found by the text alone. */
  #parsed(): URLSearchParams {
    this.#parameters ??= new URLSearchParams(this.text)
    return this.#parameters
  }
}
