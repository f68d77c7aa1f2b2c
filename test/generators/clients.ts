import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectFolder } from '../support/process.ts'

/** One generator and a program that uses its client: the file `client.json` of its folder. */
export interface GeneratedClient {
  /** The folder's name. */
  readonly name: string
  readonly language: string
  readonly generator: string
  readonly version: string
  /** The programs that must be installed. */
  readonly needs: readonly string[]
  /** What a reader types to generate the client from `openapi.json`. */
  readonly generate: string
  /** Installs what the generator and the client need. */
  readonly prepare?: string
  /** Checks or compiles the program with the client. */
  readonly build: string
  readonly run: string
  /** The versions of the language with which it was last run. */
  readonly tested: string
  /** What a reader has to know. */
  readonly know: string
}

export const generatorsFolder = join(projectFolder, 'test/generators')

export const generatedClients: readonly GeneratedClient[] = readdirSync(generatorsFolder)
  .filter(name => existsSync(join(generatorsFolder, name, 'client.json')))
  .sort()
  .map(name => ({ name, ...JSON.parse(readFileSync(join(generatorsFolder, name, 'client.json'), 'utf8')) }))
