import { type ApiKey, hashSecret, issueApiKey, isWellFormedApiKey, refusalOf } from '../api-key.ts'
import { SetupError } from '../errors.ts'
import type { Log } from '../log.ts'
import { isPostgres } from '../store/open.ts'
import type { KeyStore, Stores } from '../store.ts'
import { type Io, version } from './output.ts'
import { originOf, type ServeSettings, settings } from './settings.ts'

interface GreetingParts {
  readonly settings: ServeSettings
  readonly port: number
  readonly stores: Stores
  readonly log: Log
  readonly io: Io
}

/** Prints the addresses, the first key of a store that has never had one, and a curl line to paste. */
export async function greet({ settings, port, stores, log, io }: GreetingParts): Promise<void> {
  const { keys, location } = stores
  const { environmentKey } = settings
  const first = environmentKey === undefined ? await issueFirstKey(keys) : undefined
  const usableKey = environmentKey && (await mayRead(environmentKey, keys, log)) ? environmentKey : undefined
  const origin = originOf({ ...settings, port })
  const serves = `petstore ${version} serves ${origin}/v1 from ${location}`
  try {
    await io.out(`${serves}\n\n${rows(settings, origin, first?.secret, usableKey, io)}\nStop with Ctrl-C.\n`)
  } catch (cause) {
    if (first) await keys.revoke(first.id, new Date())
    throw new SetupError('Cannot write the address to stdout: check where stdout goes', { cause })
  }
}

/** Undefined if the store has ever had a key. */
async function issueFirstKey(keys: KeyStore): Promise<{ readonly id: bigint; readonly secret: string } | undefined> {
  const { key: secret, record } = issueApiKey({ name: 'first', permission: 'read-write', createdAt: new Date() })
  const first = await keys.createFirst(record)
  return first && { id: first.id, secret }
}

/** Whether the key in PETSTORE_API_KEY may list animals. Logs it if the store's record of the key decides that. */
async function mayRead(environmentKey: string, keys: KeyStore, log: Log): Promise<boolean> {
  const known = isWellFormedApiKey(environmentKey) ? await keys.find(hashSecret(environmentKey)) : undefined
  if (!known) return true
  const refusal = refusalOf(known, new Date())
  log.write('warn', `PETSTORE_API_KEY is ${described(known, refusal)}: its permission in the store applies`)
  return known.permission !== 'metrics' && !refusal
}

function described({ name, permission }: ApiKey, refusal: string | undefined): string {
  return `the stored key "${name}" (${[permission, refusal].filter(Boolean).join(', ')})`
}

/** `first` is a key that was just issued, `environmentKey` one that may list animals. */
function rows(
  settings: ServeSettings,
  origin: string,
  first: string | undefined,
  environmentKey: string | undefined,
  io: Io,
): string {
  // The flag takes precedence, and does not set the variable in the shell.
  const isInShell = environmentKey !== undefined && environmentKey === io.env['PETSTORE_API_KEY']
  const rows = [
    ['Catalogue', `${origin}/`],
    ['Reference', `${origin}/docs`],
    ...(settings.publicUrl === undefined ? [] : [['Public', settings.publicUrl]]),
    first
      ? ['API key', `${first} (shown only this once)`]
      : environmentKey === undefined
        ? ['New key', `${io.program} keys create --name NAME${storeFlag(settings.databaseUrl, io)}`]
        : ['API key', isInShell ? '$PETSTORE_API_KEY' : 'as given by --api-key'],
  ]
  const list = rows.map(([label = '', value]) => `  ${label.padEnd(9)}  ${value}\n`).join('')
  if (!first && !isInShell) return list
  const header = first ? `'Authorization: Bearer ${first}'` : '"Authorization: Bearer $PETSTORE_API_KEY"'
  // -k: the certificate may be self-signed.
  return `${list}\nTry it:\n  curl ${settings.tlsCert ? '-k ' : ''}-H ${header} ${origin}/v1/pets\n`
}

/** The flag with which another command in this shell opens the same store. It never shows a password. */
function storeFlag(url: string, io: Io): string {
  if (url === (io.env['DATABASE_URL'] || settings.databaseUrl.default)) return ''
  if (isPostgres(url)) return ' --database-url URL'
  return ` --database-url ${/^[\w:./-]+$/.test(url) ? url : `'${url.replaceAll("'", "'\\''")}'`}`
}
