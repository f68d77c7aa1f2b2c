import {
  ConnectionError,
  type DeprecationNotice,
  ForbiddenError,
  NotFoundError,
  type Pet,
  type PetPage,
  PetstoreClient,
  PetstoreError,
  readBaseUrl,
  UnauthorizedError,
  UnexpectedResponseError,
} from '../client/index.ts'
import { SetupError } from '../errors.ts'
import { type Field, int64, invalid, missing } from '../field.ts'
import { parseInt64 } from '../int64.ts'
import { limitDefault } from '../page.ts'
import { petStatus, petToJson } from '../pet.ts'
import type { Command, CommandGroup, Flags, Given, Option } from './arguments.ts'
import { codeOf, exitCode, type Io, table, UsageError, visible } from './output.ts'

const urlDefault = 'http://127.0.0.1:8080/v1'

const serverOptions: readonly Option[] = [
  {
    flag: '--url <url>',
    help: 'Base URL of the pet store',
    default: urlDefault,
    variable: 'PETSTORE_URL',
  },
  {
    flag: '--api-key <key>',
    help: 'The API key to send. Prefer the variable: other users can see flags in the process list',
    variable: 'PETSTORE_API_KEY',
  },
]

const listCommand: Command = {
  name: 'pets list',
  summary: 'List animals in ascending order of id',
  options: [
    { flag: '--status <status>', help: `Only animals that are ${petStatus.expected}` },
    { flag: '--limit <number>', help: 'The most animals to list', default: `${limitDefault}` },
    { flag: '--all', help: 'List all animals' },
    { flag: '--json', help: 'Print one JSON object per line' },
    ...serverOptions,
  ],
  examples: ['petstore pets list --status available', 'petstore pets list --all --json'],
  run: listPets,
}

const addCommand: Command = {
  name: 'pets add',
  summary: 'Add an animal and print it with its new id',
  arguments: [{ name: 'name', help: "the animal's name" }],
  options: [
    { flag: '--category <number>', help: "The category's id, a 64-bit integer (required)" },
    { flag: '--status <status>', help: petStatus.expected, default: 'none' },
    { flag: '--json', help: 'Print a JSON object' },
    ...serverOptions,
  ],
  examples: ['petstore pets add Rex --category 7 --status available'],
  run: addPet,
}

const getCommand: Command = {
  name: 'pets get',
  summary: 'Print one animal (deprecated: will be removed on 5 December 2030)',
  arguments: [{ name: 'id', help: "the animal's id" }],
  options: [{ flag: '--json', help: 'Print a JSON object' }, ...serverOptions],
  examples: ['petstore pets get 1'],
  run: getPet,
}

export const petsCommands: CommandGroup = {
  name: 'pets',
  summary: 'List, add and get animals of any pet store over HTTP',
  commands: [listCommand, addCommand, getCommand],
  examples: ['petstore pets list', 'petstore pets add Rex --category 7'],
}

/** The largest page of the service. */
const pageLimitMax = 100

async function listPets({ flags }: Given, io: Io): Promise<number> {
  const problems: string[] = []
  const server = readOptions(flags, io, problems)
  const status = readFlag('--status', flags, petStatus, problems)
  const wanted = flags['--all']
    ? Number.POSITIVE_INFINITY
    : (readFlag('--limit', flags, limit, problems) ?? limitDefault)
  if (flags['--all'] && flags['--limit'] !== undefined)
    problems.push('--all contradicts --limit: remove one of them')
  if (problems.length > 0) throw new UsageError(...problems)

  return withClient(server, io, async client => {
    const list = client.pets.list({ status, limit: Math.min(wanted, pageLimitMax) })
    const { count, hasMore } = await printPages(list.pages(), wanted, flags, io)
    if (flags['--json']) return
    if (count === 0)
      io.err(status === undefined ? 'The pet store has no animals\n' : `No animal is ${status}\n`)
    if (hasMore) io.err('There are more animals: --all lists all\n')
  })
}

/** A table is printed after this many animals, because its columns have to fit all its rows. */
const tableRowsMax = 1_000

/** Prints pages as they arrive, until enough animals are printed or the reader closes the pipe. */
async function printPages(pages: AsyncIterable<PetPage>, wanted: number, flags: Flags, io: Io) {
  let count = 0
  let hasMore = false
  let unprinted: Pet[] = []
  for await (const { pets, next } of pages) {
    const fitting = pets.slice(0, wanted - count)
    count += fitting.length
    hasMore = count === wanted && (next !== undefined || pets.length > fitting.length)
    unprinted.push(...fitting)
    if (count === wanted) break
    if (!flags['--json'] && unprinted.length < tableRowsMax) continue
    await printPets(unprinted, flags, io)
    unprinted = []
  }
  await printPets(unprinted, flags, io)
  return { count, hasMore }
}

async function addPet({ flags, values: [name = ''] }: Given, io: Io): Promise<number> {
  const problems: string[] = []
  const server = readOptions(flags, io, problems)
  const status = readFlag('--status', flags, petStatus, problems)
  const categoryId = readFlag('--category', flags, categoryField, problems)
  if (flags['--category'] === undefined) problems.push(missing('--category', int64))
  if (categoryId === undefined || problems.length > 0) throw new UsageError(...problems)

  return withClient(server, io, async client =>
    printPets([await client.pets.create({ name, categoryId, status })], flags, io),
  )
}

async function getPet({ flags, values: [text = ''] }: Given, io: Io): Promise<number> {
  const problems: string[] = []
  const server = readOptions(flags, io, problems)
  const id = parseInt64(text)
  if (id === undefined) problems.push(invalid('<id>', text, int64))
  if (id === undefined || problems.length > 0) throw new UsageError(...problems)

  return withClient(server, io, async client => printPets([await client.pets.get(id)], flags, io))
}

type TextField<T> = Pick<Field<T>, 'expected'> & { read(text: string): T | undefined }

const categoryField: TextField<bigint> = { ...int64, read: parseInt64 }
const limit: TextField<number> = {
  expected: 'an integer from 1 to 999999999',
  read: text => (/^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined),
}

function readFlag<T>(flag: string, flags: Flags, field: TextField<T>, problems: string[]): T | undefined {
  const text = flags[flag]
  const value = text === undefined ? undefined : field.read(text)
  if (text !== undefined && value === undefined) problems.push(invalid(flag, text, field))
  return value
}

const columns = ['ID', 'STATUS', 'CATEGORY', 'NAME']

/** The name is the last column, because it can be a thousand characters wide. */
function rowOf({ id, name, categoryId, status }: Pet): string[] {
  return [`${id}`, status ?? '-', `${categoryId}`, visible(name)]
}

async function printPets(pets: readonly Pet[], flags: Flags, io: Io): Promise<void> {
  if (pets.length === 0) return
  const lines = () => pets.map(pet => `${visible(petToJson(pet))}\n`).join('')
  await io.out(flags['--json'] ? lines() : table(columns, pets.map(rowOf)))
}

export interface Server {
  readonly baseUrl: string
  readonly apiKey: string
}

function readOptions(flags: Flags, { env, program }: Io, problems: string[]): Server {
  const url = flags['--url'] ?? (env['PETSTORE_URL'] || urlDefault)
  const urlName = flags['--url'] === undefined ? 'PETSTORE_URL' : '--url'
  const apiKey = flags['--api-key'] ?? env['PETSTORE_API_KEY']
  return readServer(urlName, url, apiKey, problems, program)
}

/** Adds problems that show neither value: the URL may contain a password. */
export function readServer(
  urlName: string,
  url: string,
  apiKey: string | undefined,
  problems: string[],
  program: string,
): Server {
  if (!apiKey) {
    problems.push(
      `The API key is missing: set PETSTORE_API_KEY; create a key with ${program} keys create --name NAME`,
    )
  } else if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    problems.push('The API key is invalid: expected visible ASCII characters')
  }
  try {
    return { baseUrl: readBaseUrl(urlName, url), apiKey: apiKey ?? '' }
  } catch (error) {
    problems.push((error as TypeError).message)
    return { baseUrl: '', apiKey: '' }
  }
}

/** Turns errors of the client into one line that says what to do. */
async function withClient(
  server: Server,
  io: Io,
  work: (client: PetstoreClient) => Promise<void>,
): Promise<number> {
  const onDeprecation = (notice: DeprecationNotice) => void io.err(deprecationLine(notice))
  try {
    await work(new PetstoreClient({ ...server, onDeprecation }))
    return exitCode.success
  } catch (error) {
    if (!(error instanceof PetstoreError)) throw error
    throw new SetupError(visible(adviceFor(error, server.baseUrl, io.program)), { cause: error })
  }
}

function adviceFor(error: PetstoreError, baseUrl: string, program: string): string {
  const { message, status = 0, requestId } = error
  if (error instanceof ConnectionError && codeOf(error.cause) === 'ECONNREFUSED') {
    return `Nothing answers at ${baseUrl}: start it with ${program} serve, or set PETSTORE_URL`
  }
  if (error instanceof UnauthorizedError) {
    return `${message}; set PETSTORE_API_KEY to a key of ${baseUrl}; create one with ${program} keys create --name NAME`
  }
  if (error instanceof ForbiddenError) return `${message}; set PETSTORE_API_KEY to a key that may write`
  const isElsewhere = error instanceof NotFoundError && error.code === 'not_found'
  if (error instanceof UnexpectedResponseError || isElsewhere) {
    return `${baseUrl} is not the base URL of a pet store: ${message}; set PETSTORE_URL, such as ${urlDefault}`
  }
  return status >= 500 && requestId !== undefined ? `${message} (request id ${requestId})` : message
}

function deprecationLine({ operation, deprecation, sunset, links }: DeprecationNotice): string {
  const day = (date: Date) => date.toISOString().slice(0, 10)
  const since = deprecation ? ` since ${day(deprecation)}` : ''
  const until = sunset ? ` and will be removed on ${day(sunset)}` : ''
  const successor = links.find(({ rel }) => rel === 'successor-version')
  const advice = successor ? `; use ${successor.href}` : ''
  return `${visible(`petstore: ${operation} is deprecated${since}${until}${advice}`)}\n`
}
