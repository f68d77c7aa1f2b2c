import { addressSuggestion } from '../client/client.ts'
import {
  type ClientOptions,
  type Fetch,
  NotFoundError,
  type Pet,
  type PetPage,
  type Pets,
  PetstoreClient,
  PetstoreError,
  RateLimitedError,
  responseOf,
  UnexpectedResponseError,
} from '../client/index.ts'
import { SetupError } from '../errors.ts'
import { oneOfText, show } from '../field.ts'
import { parseInt64 } from '../int64.ts'
import { petToJson } from '../json.ts'
import { limitDefault, limitMax } from '../page.ts'
import { petName, petStatus } from '../pet.ts'
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
  withoutUser,
} from './arguments.ts'
import {
  animals,
  announceIfSlow,
  confirmationProblems,
  type Io,
  isConfirmed,
  petTable,
  silentMsMax,
  visible,
} from './output.ts'
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

const id = { ...argument('<id>', "the animal's id"), ...int64Text }
const category = { flag: '--category, -c <number>', help: "The category's id, a 64-bit integer", ...int64Text }
const status = { ...petStatus, flag: '--status, -s <status>', optional: true } as const
const unchanged = { default: 'unchanged', optional: true } as const
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
    categoryId: category,
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
  options: { id, json, ...serverOptions },
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

const updateCommand = command({
  name: 'pets update',
  summary: 'Change the name, the category or the status of an animal (experimental)',
  options: {
    id,
    name: { flag: '--name, -n <name>', help: "The animal's name", ...petName, ...unchanged },
    categoryId: { ...category, ...unchanged },
    status: { ...status, help: petStatus.expected, ...unchanged },
    noStatus: switchOption('--no-status', 'Remove the status'),
    ifStatus: { ...status, flag: '--if-status <status>', help: 'Only if the animal has this status', default: 'any' },
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

const idsMax = 100

const removeCommand = command({
  name: 'pets remove',
  summary: 'Remove animals for good; none if one of them is missing (experimental)',
  options: {
    ids: {
      ...argument('<id>...', `the ids of 1 to ${idsMax} animals`),
      read(text) {
        const ids = [...new Set(text.split(' ').map(parseInt64))]
        return ids.length <= idsMax && ids.every(id => id !== undefined) ? ids : undefined
      },
      problem(text) {
        const wrong = text.split(' ').find(id => parseInt64(id) === undefined)
        if (wrong === undefined) return `has too many ids: expected at most ${idsMax}`
        return `is ${show(withoutUser(wrong))}: expected ${int64Text.expected}`
      },
    },
    yes: switchOption('--yes, -y', 'Skip the question; needed without a terminal'),
    ...serverOptions,
  },
  details: 'Shows the animals and asks first. The API key needs the permission manage.',
  examples: ['petstore pets remove 7', 'petstore pets remove --yes 7 8 12'],
  check: ({ yes }) => confirmationProblems(yes),
  async run({ ids, yes, ...server }, io) {
    await withClient(server, io, async ({ pets }) => {
      const found = await fetchAll(ids, pets)
      await io.err(petTable(found, 2))
      const question = `Remove ${animals(ids.length)} from ${server.baseUrl} for good?`
      if (!yes && !(await isConfirmed(question, io)))
        throw new SetupError('Nothing was removed: answer y, or use --yes')
      for (const { id, status } of found) {
        // Only as shown: it may be sold meanwhile.
        await pets.remove(id, { ifStatus: status }).catch(error => {
          io.err(`Stopped at animal ${id}\n`)
          throw error
        })
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

/** The animals with these ids. Rejects if one of them is missing. */
async function fetchAll(ids: readonly bigint[], pets: Pets): Promise<Pet[]> {
  const found: Pet[] = []
  const missing: string[] = []
  for (const id of ids) {
    try {
      found.push(await pets.get(id))
    } catch (error) {
      if (!(error instanceof NotFoundError) || error.code !== 'pet_not_found') throw error
      missing.push(`${id}`)
    }
  }
  if (missing.length > 0) throw new SetupError(`No animal has id ${oneOfText(missing)}: nothing was removed`)
  return found
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
  if (code === 'insufficient_permission') {
    return `${message}; create one with petstore keys create --name NAME --permission PERMISSION`
  }
  if (status === 403) return `${message}; set PETSTORE_API_KEY to it`
  return status >= 500 && requestId !== undefined ? `${message} (request id ${requestId})` : message
}
