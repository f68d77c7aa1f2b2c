import { copyFileSync } from 'node:fs'
import type { Requests } from '../load/load.ts'
import type { Catalogue } from './catalogue.ts'
import type { OurAnswers } from './our-answers.ts'
import type { WorkName } from './work.ts'

/** A server that is measured: a short program in contenders/, or a product. */
export interface Contender {
  /** For `--only` and for the record. */
  readonly name: string
  readonly title: string
  /** What it is, and what it leaves out that others do. */
  readonly about: string
  readonly needs?: Needs
  /** The work that it can do. */
  readonly works: readonly WorkName[]
  /** What is checked before it is timed. */
  readonly rules: readonly Rule[]
  /** How much of the catalogue it is given, where that is not all. */
  readonly animalsMax?: number
  /** Puts what it serves into its place. */
  prepare(place: Place, given: Given): void | Promise<void>
  command(place: Place): readonly string[]
  /** Beside the key. */
  env?(): Readonly<Record<string, string>>
  /** What is sent for some work, with a catalogue of this size. */
  requests(work: WorkName, animals: number): Requests
}

/** What has to be there before a contender can be started. */
export interface Needs {
  /** In bench/node_modules. */
  readonly packages?: readonly string[]
  /** On the PATH. */
  readonly programs?: readonly string[]
  /** In the environment. */
  readonly variables?: readonly string[]
}

/** Where a contender runs: nobody else uses any of it. */
export interface Place {
  readonly port: number
  readonly folder: string
  /** What it serves: its store, or its fixed answers. */
  readonly file: string
}

/** What contenders are prepared with. */
export interface Given {
  readonly catalogue: Catalogue
  /** Only ceilings and mocks need them. */
  readonly answers?: OurAnswers
}

export type Rule =
  | 'bytes'
  | 'animals'
  | 'filter'
  | 'paging'
  | 'get'
  | 'create'
  | 'key'
  | 'wrong key'
  | 'validation'
  /** Any 4xx will do. */
  | 'refusal'
  /** The answers of our own server, headers too. */
  | 'same'
  /** A list of animals, and an animal, whichever. */
  | 'example'

export const everyRule: readonly Rule[] = [
  'bytes',
  'animals',
  'filter',
  'paging',
  'get',
  'create',
  'key',
  'wrong key',
  'validation',
]

export function copyCatalogue({ file }: Place, { catalogue }: Given): void {
  copyFileSync(catalogue.file, file)
}
