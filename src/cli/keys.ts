import {
  type ApiKey,
  hashApiKey,
  issueApiKey,
  isWellFormedApiKey,
  keyNameCharsMax,
  type Permission,
  permissions,
  refusalOf,
  shownPart,
} from '../api-key.ts'
import { SetupError } from '../errors.ts'
import { invalid, oneOfText } from '../field.ts'
import { expiryForm, readExpiry } from './expiry.ts'
import { type Io, Misuse } from './io.ts'
import type { Flags } from './settings.ts'
import { table } from './table.ts'
import { withStores } from './with-stores.ts'

export interface CreateKeyOptions {
  readonly name?: string
  readonly expires?: string
  readonly permission?: string
  /** The same as the permission read-only. */
  readonly readOnly?: boolean
}

export async function createKey(options: CreateKeyOptions, flags: Flags, io: Io): Promise<void> {
  const wanted = readCreateOptions(options)
  await withStores(flags, io, { create: true }, async stores => {
    const { key, record } = issueApiKey(wanted)
    const { id } = await stores.keys.create(record)
    io.err(
      `Key "${record.name}" (${record.permission}) is in ${stores.location}; it is shown only this once:\n`,
    )
    try {
      await io.out(`${key}\n`)
    } catch (cause) {
      await stores.keys.revoke(id, new Date())
      throw new SetupError('Cannot write the key to stdout: it is revoked again, since nobody has seen it', {
        cause,
      })
    }
  })
}

/** All mistakes together. */
function readCreateOptions({ name, expires, permission: wanted, readOnly = false }: CreateKeyOptions) {
  const createdAt = new Date()
  const expiresAt = expires === undefined ? undefined : readExpiry(expires, createdAt)
  const problems: string[] = []
  const nameForm = `1 to ${keyNameCharsMax} characters on one line, not beginning with a dash`
  if (name === undefined) problems.push(`--name is missing: expected ${nameForm}`)
  else if (!isKeyName(name)) problems.push(invalid('--name', name, { expected: nameForm }))
  if (expires !== undefined && !expiresAt) {
    problems.push(invalid('--expires', expires, { expected: `${expiryForm}, in the future` }))
  }
  const permission = readPermission(wanted, readOnly, problems)
  if (name === undefined || problems.length > 0) throw new Misuse(problems)
  return { name, permission, createdAt, ...(expiresAt && { expiresAt }) }
}

function readPermission(wanted: string | undefined, readOnly: boolean, problems: string[]): Permission {
  const fallback = readOnly ? 'read-only' : 'read-write'
  if (wanted === undefined) return fallback
  const permission = permissions.find(known => known === wanted)
  if (!permission) problems.push(invalid('--permission', wanted, { expected: oneOfText(permissions) }))
  else if (readOnly && permission !== 'read-only') {
    problems.push(`--read-only contradicts --permission ${permission}: give one of them`)
  }
  return permission ?? fallback
}

function isKeyName(name: string): boolean {
  return /^[^-\p{Cc}][^\p{Cc}]*$/u.test(name) && /\S/.test(name) && name.length <= keyNameCharsMax
}

export async function listKeys(options: { readonly json?: boolean }, flags: Flags, io: Io): Promise<void> {
  await withStores(flags, io, { create: false }, async stores => {
    const keys = await stores.keys.list()
    if (options.json) await io.out(`${JSON.stringify(keys.map(jsonOf), null, 2)}\n`)
    else if (keys.length === 0)
      io.err('The store holds no key: bin/petstore keys create --name NAME makes one\n')
    else await io.out(table(columns, keys.map(rowOf)))
  })
}

/** `which` is a key's name, its first characters, or the whole key, as somebody found it where it should not be. */
export async function revokeKey(which: string, flags: Flags, io: Io): Promise<void> {
  await withStores(flags, io, { create: false }, async stores => {
    const whole = isWellFormedApiKey(which)
    const hash = hashApiKey(which)
    const matching = (await stores.keys.list()).filter(
      key => !key.revokedAt && (whole ? key.hash === hash : key.name === which || key.shown === which),
    )
    const [key] = matching
    const label = whole ? `${shownPart(which)}…` : which
    if (!key) throw new SetupError(`No key in force is called "${label}": bin/petstore keys list shows them`)
    if (matching.length > 1) {
      const choices = matching.map(({ shown }) => shown).join(', ')
      throw new SetupError(
        `${matching.length} keys are called "${label}": name one by its first characters (${choices})`,
      )
    }
    await stores.keys.revoke(key.id, new Date())
    io.err(`Key "${key.name}" (${key.shown}…) is revoked; running servers refuse it within 5 seconds\n`)
  })
}

const columns = ['NAME', 'KEY', 'ACCESS', 'CREATED', 'EXPIRES', 'LAST USED', 'DEPRECATED CALLS']

function rowOf(key: ApiKey): string[] {
  const ended = refusalOf(key, new Date())
  const expires = ended === 'revoked' ? `revoked ${minute(key.revokedAt)}` : minute(key.expiresAt)
  const deprecated =
    key.deprecatedUses === 0n ? 'none' : `${key.deprecatedUses}, last ${minute(key.deprecatedLastUsedAt)}`
  return [
    key.name,
    `${key.shown}…`,
    key.permission,
    minute(key.createdAt),
    ended === 'expired' ? `expired ${expires}` : expires,
    minute(key.lastUsedAt),
    deprecated,
  ]
}

function jsonOf(key: ApiKey) {
  return {
    name: key.name,
    firstCharacters: key.shown,
    access: key.permission,
    createdAt: key.createdAt,
    expiresAt: key.expiresAt ?? null,
    revokedAt: key.revokedAt ?? null,
    lastUsedAt: key.lastUsedAt ?? null,
    deprecatedUses: Number(key.deprecatedUses),
    deprecatedLastUsedAt: key.deprecatedLastUsedAt ?? null,
  }
}

function minute(date: Date | undefined): string {
  return date ? `${date.toISOString().slice(0, 16).replace('T', ' ')}Z` : 'never'
}
