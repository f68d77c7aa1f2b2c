import { type ApiKey, issueApiKey, keyNameCharsMax, refusal, shownPart } from '../api-key.ts'
import { SetupError } from '../fault.ts'
import { cannotRead } from '../field.ts'
import { openStores, type Stores } from '../store/open.ts'
import { expiryForm, readExpiry } from './expiry.ts'
import { type Io, Misuse } from './io.ts'
import { type Flags, readStoreSettings } from './settings.ts'
import { table } from './table.ts'

export interface CreateKeyOptions {
  readonly name: string
  readonly expires?: string
  readonly readOnly?: boolean
}

export async function createKey(options: CreateKeyOptions, flags: Flags, io: Io): Promise<void> {
  const now = new Date()
  const expiresAt = options.expires === undefined ? undefined : readExpiry(options.expires, now)
  const problems: string[] = []
  if (!/^[^\p{Cc}]*\S[^\p{Cc}]*$/u.test(options.name) || options.name.length > keyNameCharsMax) {
    problems.push(cannotRead('--name', options.name, `1 to ${keyNameCharsMax} characters on one line`))
  }
  if (options.expires !== undefined && !expiresAt) {
    problems.push(cannotRead('--expires', options.expires, `${expiryForm}, in the future`))
  }
  if (problems.length > 0) throw new Misuse(problems)
  await withStores(flags, io, { create: true }, async stores => {
    const readOnly = options.readOnly === true
    const { key, record } = issueApiKey({
      name: options.name,
      readOnly,
      createdAt: now,
      ...(expiresAt && { expiresAt }),
    })
    await stores.keys.create(record)
    io.err(
      `Key "${record.name}" (${accessOf(record.readOnly)}) is in ${stores.place}; it is shown only this once:\n`,
    )
    io.out(`${key}\n`)
  })
}

export async function listKeys(options: { readonly json?: boolean }, flags: Flags, io: Io): Promise<void> {
  await withStores(flags, io, { create: false }, async stores => {
    const keys = await stores.keys.list()
    if (options.json) io.out(`${JSON.stringify(keys.map(jsonOf), null, 2)}\n`)
    else if (keys.length === 0)
      io.err('The store holds no key: bin/petstore keys create --name NAME makes one\n')
    else io.out(table(columns, keys.map(rowOf)))
  })
}

/** `which` is a key's name, its first characters, or the whole key, as somebody found it where it should not be. */
export async function revokeKey(which: string, flags: Flags, io: Io): Promise<void> {
  await withStores(flags, io, { create: false }, async stores => {
    const inForce = (await stores.keys.list()).filter(key => !key.revokedAt)
    const shown = shownPart(which)
    const matching = inForce.filter(key => key.name === which || key.shown === shown)
    const [key] = matching
    const label = which.length > shown.length && which.startsWith('pets_') ? `${shown}…` : which
    if (!key) throw new SetupError(`No key in force is called "${label}": bin/petstore keys list shows them`)
    if (matching.length > 1) {
      const choices = matching.map(({ shown: first }) => first).join(', ')
      throw new SetupError(
        `${matching.length} keys are called "${label}": name one by its first characters (${choices})`,
      )
    }
    await stores.keys.revoke(key.id, new Date())
    io.err(`Key "${key.name}" (${key.shown}…) is revoked; running servers refuse it within 5 seconds\n`)
  })
}

async function withStores(
  flags: Flags,
  io: Io,
  options: { readonly create: boolean },
  work: (stores: Stores) => Promise<void>,
): Promise<void> {
  const stores = await openStores(readStoreSettings(flags, io.env), options)
  try {
    await work(stores)
  } finally {
    await stores.close()
  }
}

const columns = ['NAME', 'KEY', 'ACCESS', 'CREATED', 'EXPIRES', 'LAST USED', 'DEPRECATED CALLS']

function rowOf(key: ApiKey): string[] {
  const ended = refusal(key, new Date())
  const expires = ended === 'revoked' ? `revoked ${minute(key.revokedAt)}` : minute(key.expiresAt)
  const deprecated =
    key.deprecatedUses === 0n ? 'none' : `${key.deprecatedUses}, last ${minute(key.deprecatedLastUsedAt)}`
  return [
    key.name,
    `${key.shown}…`,
    accessOf(key.readOnly),
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
    access: accessOf(key.readOnly),
    createdAt: key.createdAt,
    expiresAt: key.expiresAt ?? null,
    revokedAt: key.revokedAt ?? null,
    lastUsedAt: key.lastUsedAt ?? null,
    deprecatedUses: Number(key.deprecatedUses),
    deprecatedLastUsedAt: key.deprecatedLastUsedAt ?? null,
  }
}

function accessOf(readOnly: boolean): string {
  return readOnly ? 'read-only' : 'read-write'
}

function minute(date: Date | undefined): string {
  return date ? `${date.toISOString().slice(0, 16).replace('T', ' ')}Z` : 'never'
}
