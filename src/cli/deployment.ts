import type { Command } from 'commander'
import {
  ConnectionError,
  type DeprecationNotice,
  ForbiddenError,
  NotFoundError,
  PetstoreClient,
  PetstoreError,
  UnauthorizedError,
  UnexpectedResponseError,
} from '../client/index.ts'
import { SetupError } from '../errors.ts'
import type { Io } from './io.ts'
import type { Env } from './settings.ts'
import { visible } from './visible.ts'

/** Which pet store a command speaks to. */
export interface DeploymentFlags {
  readonly url?: string
  readonly apiKey?: string
}

interface Deployment {
  readonly baseUrl: string
  readonly apiKey: string
}

const urlDefault = 'http://127.0.0.1:8080/v1'

export function addDeploymentFlags(to: Command): Command {
  return to
    .option('--url <url>', `base address of the pet store (default ${urlDefault}) [PETSTORE_URL]`)
    .option(
      '--api-key <key>',
      'the key to send; the process list shows a flag, so prefer the variable [PETSTORE_API_KEY]',
    )
}

/** Neither is shown in a problem: an address may hold a password, and the key is a secret. */
export function readDeployment({ url, apiKey }: DeploymentFlags, env: Env, problems: string[]): Deployment {
  const baseUrl = url ?? (env['PETSTORE_URL'] || urlDefault)
  const key = apiKey ?? (env['PETSTORE_API_KEY'] || undefined)
  if (!isBaseAddress(baseUrl)) {
    problems.push(
      `Cannot read ${url === undefined ? 'PETSTORE_URL' : '--url'}: expected an http or https address without user, query or fragment, such as ${urlDefault}`,
    )
  }
  if (key === undefined) {
    problems.push(
      'The API key is missing: set PETSTORE_API_KEY to one; bin/petstore keys create --name NAME makes it',
    )
  } else if (!/^[\x21-\x7e]+$/.test(key)) {
    problems.push(
      `Cannot use ${apiKey === undefined ? 'PETSTORE_API_KEY' : '--api-key'}: expected visible ASCII characters`,
    )
  }
  return { baseUrl, apiKey: key ?? '' }
}

function isBaseAddress(text: string): boolean {
  const url = URL.parse(text)
  return (
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    url.username + url.password + url.search + url.hash === ''
  )
}

/** Does the work through a client; what the pet store refuses becomes a line that says what to do. */
export async function withPetstore(
  { baseUrl, apiKey }: Deployment,
  io: Io,
  work: (store: PetstoreClient) => Promise<void>,
): Promise<void> {
  const onDeprecation = (notice: DeprecationNotice) => io.err(deprecationLine(notice))
  try {
    await work(new PetstoreClient({ baseUrl, apiKey, onDeprecation }))
  } catch (error) {
    if (!(error instanceof PetstoreError)) throw error
    throw new SetupError(visible(adviceFor(error, baseUrl)), { cause: error })
  }
}

function adviceFor(error: PetstoreError, baseUrl: string): string {
  const { message, requestId } = error
  if (error instanceof ConnectionError && isRefused(error.cause)) {
    return `Nothing answers at ${baseUrl}: start it with npm start, or set PETSTORE_URL to where it is`
  }
  if (error instanceof UnauthorizedError) {
    return `${message}: set PETSTORE_API_KEY to a key of ${baseUrl}; bin/petstore keys create --name NAME makes one`
  }
  if (error instanceof ForbiddenError) return `${message}: set PETSTORE_API_KEY to a key that may write`
  if (
    error instanceof UnexpectedResponseError ||
    (error instanceof NotFoundError && error.code === 'not_found')
  ) {
    return `${baseUrl} is not the base address of a pet store: ${message}; set PETSTORE_URL to one, such as ${urlDefault}`
  }
  return error.status !== undefined && error.status >= 500 && requestId !== undefined
    ? `${message} (request id ${requestId})`
    : message
}

function isRefused(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED'
}

function deprecationLine({ operation, deprecation, sunset, links }: DeprecationNotice): string {
  const since = deprecation ? ` since ${dayOf(deprecation)}` : ''
  const until = sunset ? ` and goes away on ${dayOf(sunset)}` : ''
  const successor = links.find(({ rel }) => rel === 'successor-version')
  const instead = successor ? `; use ${successor.href} instead` : ''
  return visible(`petstore: ${operation} is deprecated${since}${until}${instead}`).concat('\n')
}

function dayOf(date: Date): string {
  return date.toISOString().slice(0, 10)
}
