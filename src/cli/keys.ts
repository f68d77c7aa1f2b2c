import {
  type ApiKey,
  hashSecret,
  issueApiKey,
  isWellFormedApiKey,
  maskKeys,
  permissions,
  whyInvalid,
} from '../api-key.ts'
import { SetupError } from '../errors.ts'
import { oneOf, oneOfText } from '../field.ts'
import { argument, type CommandGroup, command, switchOption } from './command.ts'
import { visible } from './output.ts'
import { storeOptions, withStores } from './stores.ts'
import { minute, table } from './terminal.ts'

const nameCharsMax = 100

const createCommand = command({
  name: 'keys create',
  summary: 'Create an API key and print it, alone, on stdout; it cannot be shown again',
  options: {
    name: {
      name: 'name',
      short: 'n',
      value: 'name',
      help: 'Name of the key, for keys list',
      expected: `1 to ${nameCharsMax} characters on one line, not beginning with a dash`,
      read: text => (/^(?!-)\P{Cc}+$/u.test(text) && /\S/.test(text) && text.length <= nameCharsMax ? text : undefined),
    },
    expiresAt: {
      name: 'expires',
      value: 'when',
      help: '30m, 12h, 90d, 4w or 1y from now, or a date',
      otherwise: 'never',
      expected: 'a time from now such as 30m, 12h, 90d, 4w or 1y, or a future date such as 2030-01-31',
      read: text => readExpiry(text, new Date()),
    },
    permission: {
      name: 'permission',
      value: 'permission',
      help: 'manage (also changes and removes animals), read-write, read-only (list and fetch) or metrics (only /metrics)',
      default: 'read-write',
      ...oneOf(permissions),
    },
    ...storeOptions,
  },
  examples: [
    'petstore keys create --name till',
    'petstore keys create --name screen --permission read-only --expires 90d',
  ],
  async run({ name, expiresAt, permission, ...store }, io) {
    const { key, record } = issueApiKey({ name, permission, createdAt: new Date(), ...(expiresAt && { expiresAt }) })
    await withStores({ ...store, create: true }, io, async ({ keys, location }) => {
      const { id } = await keys.create(record)
      const expires = expiresAt ? `expires ${minute(expiresAt)}` : 'never expires'
      io.err(`Created key "${name}" (${permission}, ${expires}) in ${location}. It is shown only once:\n`)
      try {
        await io.out(`${key}\n`)
      } catch (cause) {
        await keys.revoke(id, new Date())
        throw new SetupError('Cannot write the key to stdout: the key was revoked again', { cause })
      }
    })
  },
})

const listCommand = command({
  name: 'keys list',
  summary: 'List all keys, by their first characters',
  options: { json: switchOption('json', 'Print a JSON array'), ...storeOptions },
  examples: ['petstore keys list', 'petstore keys list --json'],
  async run({ json, ...store }, io) {
    await withStores({ ...store, create: false }, io, async stores => {
      const keys = await stores.keys.list()
      if (json) await io.out(`${JSON.stringify(keys.map(keyToJson), null, 2)}\n`)
      else if (keys.length > 0) await io.out(table(columns, keys.map(formatRow)))
      else io.err(`The store has no keys: create one with ${io.program} keys create --name NAME\n`)
    })
  },
})

const revokeCommand = command({
  name: 'keys revoke',
  summary: 'Revoke a key; running servers refuse it within 5 seconds',
  options: {
    given: argument('key', "the key's name, its first characters as in keys list, or the whole key"),
    ...storeOptions,
  },
  examples: ['petstore keys revoke till', 'petstore keys revoke pets_1a2B'],
  async run({ given, ...store }, io) {
    await withStores({ ...store, create: false }, io, async ({ keys }) => {
      const key = findKey(given, await keys.list(), io.program)
      await keys.revoke(key.id, new Date())
      io.err(`Revoked key "${visible(key.name)}" (${visible(key.shown)}…): servers refuse it within 5 seconds\n`)
    })
  },
})

export const keysCommands: CommandGroup = {
  name: 'keys',
  summary: 'Create, list and revoke API keys',
  commands: [createCommand, listCommand, revokeCommand],
  examples: ['petstore keys create --name till', 'petstore keys list'],
}

const dayMs = 86_400_000
const unitMs = new Map(Object.entries({ m: 60_000, h: 3_600_000, d: dayMs, w: 7 * dayMs, y: 365 * dayMs }))

/** Undefined if the text is not a time from now or a date, or if the date is not in the future. */
export function readExpiry(text: string, now: Date): Date | undefined {
  const [, count, unit = ''] = /^([1-9]\d{0,4})([mhdwy])$/.exec(text) ?? []
  if (count !== undefined) return new Date(now.getTime() + Number(count) * (unitMs.get(unit) ?? 0))
  if (!/^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?Z)?$/.test(text)) return undefined
  const date = new Date(text)
  // Date reads 31 February as 3 March.
  if (Number.isNaN(date.getTime()) || !date.toISOString().startsWith(text.slice(0, 10))) return undefined
  return date > now ? date : undefined
}

/** The key that is not revoked and has this name or these first characters, or is this key. */
export function findKey(given: string, keys: readonly ApiKey[], program: string): ApiKey {
  const isWhole = isWellFormedApiKey(given)
  const isMeant = ({ hash, name, shown }: ApiKey) =>
    isWhole ? hash === hashSecret(given) : name === given || shown === given
  const [key, ...others] = keys.filter(key => !key.revokedAt && isMeant(key))
  const label = maskKeys(given)
  if (!key) throw new SetupError(`No valid key is called "${label}": ${program} keys list shows all keys`)
  if (others.length === 0) return key
  const choices = oneOfText([key, ...others].map(({ shown }) => visible(shown)))
  throw new SetupError(`${others.length + 1} keys are called "${label}": use the first characters, ${choices}`)
}

const columns = ['NAME', 'KEY', 'PERMISSION', 'CREATED', 'EXPIRES', 'LAST USED', 'DEPRECATED CALLS']

function formatRow(key: ApiKey): string[] {
  const refusal = whyInvalid(key, new Date())
  const end = minute(refusal === 'revoked' ? key.revokedAt : key.expiresAt)
  const expires = refusal ? `${refusal} ${end}` : end
  const uses = key.deprecatedUses === 0n ? 'none' : `${key.deprecatedUses}, last ${minute(key.deprecatedLastUsedAt)}`
  const [created, used] = [minute(key.createdAt), minute(key.lastUsedAt)]
  return [visible(key.name), `${visible(key.shown)}…`, key.permission, created, expires, used, uses]
}

function keyToJson(key: ApiKey) {
  return {
    name: key.name,
    firstCharacters: key.shown,
    permission: key.permission,
    createdAt: key.createdAt,
    expiresAt: key.expiresAt ?? null,
    revokedAt: key.revokedAt ?? null,
    lastUsedAt: key.lastUsedAt ?? null,
    deprecatedUses: Number(key.deprecatedUses),
    deprecatedLastUsedAt: key.deprecatedLastUsedAt ?? null,
  }
}
