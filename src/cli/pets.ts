import {
  type ClientOptions,
  type Fetch,
  type Pet,
  type PetPage,
  PetstoreClient,
  PetstoreError,
  UnexpectedResponseError,
} from '../client/index.ts'
import { addressSuggestion } from '../client/options.ts'
import { SetupError } from '../errors.ts'
import { petToJson } from '../json.ts'
import { limitDefault, limitMax } from '../page.ts'
import { petName, petStatus } from '../pet.ts'
import { connectionProblem } from './advice.ts'
import { argument, type CommandGroup, command, int64Text, integer, setting, switchOption } from './command.ts'
import { type Io, visible } from './output.ts'
import { baseUrl } from './settings.ts'
import { animals, confirmationProblems, isConfirmed, table } from './terminal.ts'

const urlDefault = 'http://127.0.0.1:8080/v1'

/** A base URL of any server. Messages do not show an invalid one: it may contain a password or a key. */
export const baseUrlOption = {
  ...baseUrl,
  problem: (text: string) => `is invalid: ${addressSuggestion(text) ?? `expected ${baseUrl.expected}`}`,
}

export const apiKeyOption = {
  name: 'api-key',
  alias: 'key',
  value: 'key',
  variable: 'PETSTORE_API_KEY',
  help: 'The API key to send. Prefer the variable: other users can see flags in the process list',
  expected: 'an API key',
  advice: (program: string) => `${program} keys create --name NAME creates one`,
  problem: () => 'is invalid: expected visible ASCII characters',
  read: (key: string) => (/^[\x21-\x7e]+$/.test(key) ? key : undefined),
}

const serverOptions = {
  baseUrl: setting('url', 'PETSTORE_URL', urlDefault, {
    help: 'Base URL of the pet store; /v1 is added if it is missing',
    ...baseUrlOption,
  }),
  apiKey: apiKeyOption,
}

const id = { ...argument('id', "the animal's id"), ...int64Text }
const category = { name: 'category', short: 'c', help: "The category's id, a 64-bit integer", ...int64Text }
const status = { name: 'status', value: 'status', ...petStatus }
const unchanged = { otherwise: 'unchanged' }
const count = integer(1, 999_999_999)
const json = switchOption('json', 'Print a JSON object')

const listCommand = command({
  name: 'pets list',
  summary: 'List animals in ascending order of id',
  options: {
    status: { ...status, short: 's', help: `Only animals that are ${petStatus.expected}`, otherwise: 'all' },
    limit: { name: 'limit', short: 'l', help: 'The most animals to list', default: `${limitDefault}`, ...count },
    all: switchOption('all', 'List all animals'),
    json: switchOption('json', 'Print one JSON object per line'),
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
    name: argument('name', "the animal's name"),
    categoryId: category,
    status: { ...status, short: 's', help: petStatus.expected, otherwise: 'none' },
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
  options: { id, json, ...serverOptions },
  examples: ['petstore pets get 1'],
  async run({ id, json, ...server }, io) {
    await withClient(server, io, async client => {
      await printPets([await client.pets.get(id)], json, io)
      io.err(`pets get is deprecated and will be removed on 5 December 2030: use ${io.program} pets list\n`)
    })
  },
})

const updateCommand = command({
  name: 'pets update',
  summary: 'Change the name, the category or the status of an animal (experimental)',
  options: {
    id,
    name: { name: 'name', short: 'n', value: 'name', help: "The animal's name", ...petName, ...unchanged },
    categoryId: { ...category, ...unchanged },
    status: { ...status, short: 's', help: petStatus.expected, ...unchanged },
    noStatus: switchOption('no-status', 'Remove the status'),
    ifStatus: { ...status, name: 'if-status', help: 'Only if the animal has this status', otherwise: 'any' },
    json,
    ...serverOptions,
  },
  details: 'Prints the animal after the change. The API key needs the permission manage.',
  examples: [
    'petstore pets update 7 --status sold --if-status pending',
    'petstore pets update 7 --name Rex --no-status',
  ],
  check(_, isGiven) {
    if (isGiven('status') && isGiven('noStatus')) return ['--status contradicts --no-status: remove one of them']
    const isAnyGiven = (['name', 'categoryId', 'status', 'noStatus'] as const).some(isGiven)
    return isAnyGiven ? [] : ['Nothing to change: expected --name, --category, --status or --no-status']
  },
  async run({ id, name, categoryId, status, noStatus, ifStatus, json, ...server }, io) {
    const changes = { name, categoryId, status: noStatus ? null : status }
    await withClient(server, io, async ({ pets }) =>
      printPets([await pets.update(id, changes, { ifStatus })], json, io),
    )
  },
})

const removeCommand = command({
  name: 'pets remove',
  summary: 'Remove animals for good; none if one of them is missing (experimental)',
  options: {
    ids: { ...id, help: 'the ids of the animals', argument: 'several' },
    yes: switchOption('yes', 'Skip the question; needed without a terminal', 'y'),
    ...serverOptions,
  },
  details: 'Shows the animals and asks first. The API key needs the permission manage.',
  examples: ['petstore pets remove 7', 'petstore pets remove --yes 7 8 12'],
  check: ({ yes }) => confirmationProblems(yes),
  async run({ ids, yes, ...server }, io) {
    await withClient(server, io, async ({ pets }) => {
      const found: Pet[] = []
      for (const id of new Set(ids)) found.push(await pets.get(id))
      await io.err(petTable(found))
      const question = `Remove ${animals(found.length)} from ${server.baseUrl} for good?`
      if (!yes && !(await isConfirmed(question, io)))
        throw new SetupError('Nothing was removed: answer y, or use --yes')
      for (const { id, status } of found) {
        // Only as shown: it may be sold meanwhile.
        await pets.remove(id, { ifStatus: status })
        io.err(`Removed animal ${id}\n`)
      }
    })
  },
})

export const petsCommands: CommandGroup = {
  name: 'pets',
  summary: 'List, add, get, change and remove animals of any pet store over HTTP',
  commands: [listCommand, addCommand, getCommand, updateCommand, removeCommand],
  examples: ['petstore pets list', 'petstore pets add Rex --category 7'],
}

/** The columns of a table fit all its rows, so that many. */
const tableRowsMax = 1_000

/** Prints objects as they arrive, and a table after as many animals as one has. */
async function printPages(pages: AsyncIterable<PetPage>, max: number, json: boolean, io: Io) {
  const rows: Pet[] = []
  let count = 0
  let hasMore = false
  for await (const { pets, nextCursor } of pages) {
    const fitting = pets.slice(0, max - count)
    count += fitting.length
    hasMore = nextCursor !== undefined || pets.length > fitting.length
    rows.push(...fitting)
    if (json || rows.length >= tableRowsMax) await printPets(rows.splice(0), json, io)
    if (count === max) break
  }
  await printPets(rows, json, io)
  return { count, hasMore }
}

/** The name is the last column, because it can be a thousand characters wide. */
function petTable(pets: readonly Pet[]): string {
  const rows = pets.map(({ id, name, categoryId, status }) => [`${id}`, status ?? '-', `${categoryId}`, visible(name)])
  return table(['ID', 'STATUS', 'CATEGORY', 'NAME'], rows)
}

async function printPets(pets: readonly Pet[], json: boolean, io: Io): Promise<void> {
  if (pets.length === 0) return
  await io.out(json ? pets.map(pet => `${visible(petToJson(pet))}\n`).join('') : petTable(pets))
}

/** A command that waits longer than this says so. */
const silentMsMax = 1_000

type Server = Readonly<Record<'baseUrl' | 'apiKey', string>>

async function withClient(server: Server, io: Io, work: (client: PetstoreClient) => unknown) {
  const fetch: Fetch = (url, init) => {
    const timer = setTimeout(() => io.err(`Waiting for ${server.baseUrl}\n`), silentMsMax)
    return globalThis.fetch(url, init).finally(() => clearTimeout(timer))
  }
  const onAttempt: ClientOptions['onAttempt'] = ({ error, retryInMs = 0 }) => {
    const reason = error?.status === 429 ? 'Rate limited' : visible(error?.message ?? '')
    if (retryInMs > silentMsMax) io.err(`${reason}: waiting ${Math.round(retryInMs / 1_000)} s\n`)
  }
  try {
    await work(new PetstoreClient({ ...server, fetch, onAttempt }))
  } catch (error) {
    if (!(error instanceof PetstoreError)) throw error
    const problem = connectionProblem(server.baseUrl, { code: error.cause }, io.program)
    throw problem ?? new SetupError(visible(adviceFor(error, server.baseUrl, io.program)), { cause: error })
  }
}

function adviceFor(error: PetstoreError, baseUrl: string, program: string): string {
  const { message, code, status = 0, requestId } = error
  if (error instanceof UnexpectedResponseError || code === 'not_found') {
    return `${baseUrl} is not the base URL of a pet store: ${message}; set PETSTORE_URL or --url, such as ${urlDefault}`
  }
  const create = `create one with ${program} keys create --name NAME`
  if (status === 401) return `${message}; set PETSTORE_API_KEY to a key of ${baseUrl}; ${create}`
  if (status === 403) return `${message}; ${create} --permission PERMISSION`
  return status >= 500 && requestId !== undefined ? `${message} (request id ${requestId})` : message
}
