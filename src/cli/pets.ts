import { addressSuggestion } from '../client/client.ts'
import {
  type ClientOptions,
  type Fetch,
  type Pet,
  type PetPage,
  PetstoreClient,
  PetstoreError,
  RateLimitedError,
  responseOf,
  UnexpectedResponseError,
} from '../client/index.ts'
import { SetupError } from '../errors.ts'
import { petToJson } from '../json.ts'
import { limitDefault, limitMax } from '../page.ts'
import { petStatus } from '../pet.ts'
import { connectionProblem } from './advice.ts'
import {
  argument,
  type CommandGroup,
  command,
  int64Text,
  integer,
  setting,
  switchOption,
  type Values,
} from './arguments.ts'
import { announceIfSlow, type Io, petTable, silentMsMax, visible } from './output.ts'
import { baseUrl } from './settings.ts'

const urlDefault = 'http://127.0.0.1:8080/v1'

/** A base URL of any server. Messages do not show an invalid one: it may contain a password or a key. */
export const baseUrlOption = {
  ...baseUrl,
  problem: (text: string) => `is invalid: ${addressSuggestion(text) ?? `expected ${baseUrl.expected}`}`,
}

export const apiKeyOption = {
  flag: '--api-key, --key <key>',
  variable: 'PETSTORE_API_KEY',
  help: 'The API key to send. Prefer the variable: other users can see flags in the process list',
  expected: 'an API key; petstore keys create --name NAME creates one',
  problem: () => 'is invalid: expected visible ASCII characters',
  read: (key: string) => (/^[\x21-\x7e]+$/.test(key) ? key : undefined),
}

const serverOptions = {
  baseUrl: setting('PETSTORE_URL', '--url <url>', urlDefault, {
    help: 'Base URL of the pet store; /v1 is added if it is missing',
    ...baseUrlOption,
  }),
  apiKey: apiKeyOption,
}

const status = { ...petStatus, flag: '--status, -s <status>', optional: true } as const
const limit = integer(1, 999_999_999)
const json = switchOption('--json', 'Print a JSON object')

/** A table is printed after this many animals, because its columns have to fit all its rows. */
const tableRowsMax = 1_000

const listCommand = command({
  name: 'pets list',
  summary: 'List animals in ascending order of id',
  options: {
    status: { ...status, help: `Only animals that are ${petStatus.expected}`, default: 'all' },
    limit: { flag: '--limit, -l <number>', help: 'The most animals to list', default: `${limitDefault}`, ...limit },
    all: switchOption('--all', 'List all animals'),
    json: switchOption('--json', 'Print one JSON object per line'),
    ...serverOptions,
  },
  examples: ['petstore pets list --status available', 'petstore pets list --all --json'],
  check: ({ all }, isGiven) => (all && isGiven('limit') ? ['--all contradicts --limit: remove one of them'] : []),
  async run({ status, limit, all, json, ...server }, io) {
    const max = all ? Number.POSITIVE_INFINITY : limit
    await withClient(server, io, async client => {
      const pages = client.pets.list({ status, limit: Math.min(max, limitMax) }).pages()
      const { count, hasMore } = await printPages(pages, max, json, io)
      const none = status === undefined ? 'The pet store has no animals' : `No animal is ${status}`
      if (count === 0 && !json) io.err(`${none}\n`)
      if (hasMore) io.err('There are more animals: --all lists all\n')
    })
  },
})

const addCommand = command({
  name: 'pets add',
  summary: 'Add an animal and print it with its new id',
  options: {
    name: argument('<name>', "the animal's name"),
    categoryId: { flag: '--category, -c <number>', help: "The category's id, a 64-bit integer", ...int64Text },
    status: { ...status, help: petStatus.expected, default: 'none' },
    json,
    ...serverOptions,
  },
  examples: ['petstore pets add Rex --category 7 --status available'],
  async run({ name, categoryId, status, json, ...server }, io) {
    const pet = { name, categoryId, status }
    await withClient(server, io, async client => printPets([await client.pets.create(pet)], json, io))
  },
})

const getCommand = command({
  name: 'pets get',
  summary: 'Print one animal (deprecated: will be removed on 5 December 2030)',
  options: { id: { ...argument('<id>', "the animal's id"), ...int64Text }, json, ...serverOptions },
  examples: ['petstore pets get 1'],
  async run({ id, json, ...server }, io) {
    await withClient(server, io, async client => {
      const pet = await client.pets.get(id)
      await printPets([pet], json, io)
      if (responseOf(pet)?.headers.has('deprecation')) {
        io.err(`pets get is deprecated and will be removed on 5 December 2030: use ${io.program} pets list\n`)
      }
    })
  },
})

export const petsCommands: CommandGroup = {
  name: 'pets',
  summary: 'List, add and get animals of any pet store over HTTP',
  commands: [listCommand, addCommand, getCommand],
  examples: ['petstore pets list', 'petstore pets add Rex --category 7'],
}

/** Prints pages as they arrive, until enough animals are printed or the reader closes the pipe. */
async function printPages(pages: AsyncIterable<PetPage>, max: number, json: boolean, io: Io) {
  let count = 0
  let hasMore = false
  let unprinted: Pet[] = []
  for await (const { pets, next } of pages) {
    const fitting = pets.slice(0, max - count)
    count += fitting.length
    hasMore = count === max && (next !== undefined || pets.length > fitting.length)
    unprinted.push(...fitting)
    if (count === max) break
    if (!json && unprinted.length < tableRowsMax) continue
    await printPets(unprinted, json, io)
    unprinted = []
  }
  await printPets(unprinted, json, io)
  return { count, hasMore }
}

const formatLine = (pet: Pet) => `${visible(petToJson(pet))}\n`

async function printPets(pets: readonly Pet[], json: boolean, io: Io): Promise<void> {
  if (pets.length > 0) await io.out(json ? pets.map(formatLine).join('') : petTable(pets, 1))
}

async function withClient(server: Values<typeof serverOptions>, io: Io, work: (client: PetstoreClient) => unknown) {
  const fetch: Fetch = (url, init) => announceIfSlow(globalThis.fetch(url, init), io, `Waiting for ${server.baseUrl}`)
  const onRetry: ClientOptions['onRetry'] = ({ error, waitMs }) => {
    const reason = error instanceof RateLimitedError ? 'Rate limited' : visible(error.message)
    if (waitMs > silentMsMax) io.err(`${reason}: waiting ${Math.round(waitMs / 1_000)} s\n`)
  }
  try {
    await work(new PetstoreClient({ ...server, fetch, onRetry }))
  } catch (error) {
    if (!(error instanceof PetstoreError)) throw error
    const problem = connectionProblem(server.baseUrl, error.cause)
    throw problem ?? new SetupError(visible(adviceFor(error, server.baseUrl)), { cause: error })
  }
}

function adviceFor(error: PetstoreError, baseUrl: string): string {
  const { message, code, status = 0, requestId } = error
  if (error instanceof UnexpectedResponseError || code === 'not_found') {
    return `${baseUrl} is not the base URL of a pet store: ${message}; set PETSTORE_URL or --url, such as ${urlDefault}`
  }
  if (status === 401) {
    return `${message}; set PETSTORE_API_KEY to a key of ${baseUrl}; create one with petstore keys create --name NAME`
  }
  if (status === 403) return `${message}; set PETSTORE_API_KEY to it`
  return status >= 500 && requestId !== undefined ? `${message} (request id ${requestId})` : message
}
