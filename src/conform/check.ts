import type { Pet, PetStatus } from '../pet.ts'
import { CheckEnded, Exchange, type Finding, fail, skip } from './exchange.ts'

/** One rule. It depends on no other check and accepts any content of the catalogue. */
export interface Check {
  readonly name: string
  /** `contract`: the interface requires it. `decision`: our choice where the interface is silent. */
  readonly rule: 'contract' | 'decision'
  /** The section of the documentation with the rule. */
  readonly where: string
  /** Whether it sends more than GET and HEAD. */
  readonly writes: boolean
  /** Never rejects because of the server. */
  run(probe: Probe): Promise<Finding>
}

type CheckBody = (probe: Probe) => Promise<void>

interface Rules {
  /** A check that only reads. If the run may write, it may add the animals that it needs. */
  reads(name: string, body: CheckBody): Check
  writes(name: string, body: CheckBody): Check
  /** Each of the requests gets an Error with this status, and its message contains the names. */
  refuses(what: string, status: number, requests: readonly ProbeRequest[], ...names: string[]): Check
}

/** Makes the checks for one section of docs/interface.md. A check passes if its body returns. */
export function rules(rule: Check['rule'], heading: string): Rules {
  const where = `docs/interface.md, ${heading}`
  const check = (name: string, writes: boolean, body: CheckBody): Check => ({
    name,
    rule,
    where,
    writes,
    run: async probe => (writes && probe.readOnly ? readOnlyRun : await findingOf(body, probe)),
  })
  return {
    reads: (name, body) => check(name, false, body),
    writes: (name, body) => check(name, true, body),
    refuses(what, status, requests, ...names) {
      const about = names.length === 0 ? '' : ` with a message about ${names.join(', ')}`
      return check(`${what} is ${status}${about}`, requests.some(isWrite), async probe => {
        for (const request of requests) (await probe.send(request)).error(status, ...names)
      })
    },
  }
}

const readOnlyRun: Finding = { outcome: 'skipped', why: 'it writes, and this run only reads' }

async function findingOf(body: CheckBody, probe: Probe): Promise<Finding> {
  try {
    await body(probe)
    return { outcome: 'passed' }
  } catch (error) {
    if (error instanceof CheckEnded) return error.finding
    throw error
  }
}

interface ProbeRequest {
  /** Under the base address. */
  readonly path: string
  /** Default: GET. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer>
  /** The Authorization header; null sends none. Default: the key. */
  readonly authorization?: string | null
}

/** POST /pets with a JSON body, unless the options change that. */
export function post(body: ProbeRequest['body'], { headers, ...options }: Partial<ProbeRequest> = {}): ProbeRequest {
  const json = { 'Content-Type': 'application/json', ...headers }
  return { path: '/pets', method: 'POST', headers: json, ...(body !== undefined && { body }), ...options }
}

function isWrite({ method = 'GET' }: ProbeRequest): boolean {
  return method !== 'GET' && method !== 'HEAD'
}

/** A NewPet as JSON. Values are JSON text, so that a check can send invalid ones; undefined omits the field. */
export function newPet(fields: Readonly<Record<string, string | undefined>> = {}): string {
  const all = { name: JSON.stringify(petName()), categoryId: '1', ...fields }
  const written = Object.entries(all).filter(([, value]) => value !== undefined)
  return `{${written.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
}

/** Tells the operator where the animal comes from. */
export function petName(): string {
  return `conform ${crypto.randomUUID().slice(0, 8)}`
}

/** Random, near the end of the range: no animal has it. */
export function absentId(): bigint {
  return 2n ** 63n - 2n - BigInt(Math.floor(Math.random() * 1e12))
}

export const wrongCredential = `Bearer conform-wrong-key-${crypto.randomUUID()}`

/** The server to check. */
export interface Target {
  /** Without a slash at the end: `https://pets.example.com/v1`. */
  readonly baseUrl: string
  readonly key: string
  /** Send only GET and HEAD. */
  readonly readOnly: boolean
}

const responseMs = 10_000
const bodyCharsShown = 100
const rateLimitedMax = 5
const retryAfterSecondsMax = 10

/** Sends the requests of the checks. */
export class Probe implements Target {
  readonly baseUrl: string
  readonly key: string
  readonly readOnly: boolean

  constructor({ baseUrl, key, readOnly }: Target) {
    this.baseUrl = baseUrl
    this.key = key
    this.readOnly = readOnly
  }

  /** A string is the path of a GET. Fails the check if there is no response. */
  async send(what: string | ProbeRequest): Promise<Exchange> {
    const request = typeof what === 'string' ? { path: what } : what
    if (this.readOnly && isWrite(request)) {
      skip('the catalogue has too few animals for it, and this run only reads')
    }
    for (let attempt = 1; ; attempt++) {
      const exchange = await this.#exchange(request)
      const seconds = Number(exchange.headers.get('retry-after') ?? Number.NaN)
      const retry = exchange.status === 429 && attempt < rateLimitedMax && seconds <= retryAfterSecondsMax
      if (!retry) return exchange
      await Bun.sleep(seconds * 1_000)
    }
  }

  async #exchange({ path, method = 'GET', headers, body, authorization }: ProbeRequest): Promise<Exchange> {
    const credential = authorization === undefined ? `Bearer ${this.key}` : authorization
    const shownBody = typeof body === 'string' ? ` ${body.slice(0, bodyCharsShown).trimEnd()}` : ''
    const request = `${method} ${path}${shownBody}`
    const url = `${this.baseUrl}${path}`
    try {
      const response = await fetch(url, {
        method,
        headers: { ...(credential !== null && { Authorization: credential }), ...headers },
        ...(body !== undefined && { body }),
        // A redirect may lead to another server, which must not receive the key.
        redirect: 'manual',
        signal: AbortSignal.timeout(responseMs),
      })
      return new Exchange(request, url, response, await response.text())
    } catch (error) {
      const { code, name } = error as { code?: string | number; name?: string }
      const cause = name === 'TimeoutError' ? 'time-out' : (code ?? name)
      return fail(`a response to ${request} within ${responseMs / 1_000} s`, `none (${cause})`)
    }
  }

  /** POST /pets with these fields. */
  create(fields?: Readonly<Record<string, string>>): Promise<Exchange> {
    return this.send(post(newPet(fields)))
  }

  async addPet(fields?: Readonly<Record<string, string>>): Promise<Pet> {
    return (await this.create(fields)).pet(201)
  }

  /** An animal of the catalogue; adds one if the catalogue is empty. */
  async anyPet(): Promise<Pet> {
    const [first] = (await this.send('/pets?limit=1')).pets()
    return first ?? (await this.addPet())
  }

  /** Adds animals until the catalogue has this many (at most 100), with this status if one is given. */
  async ensurePets(count: number, status?: PetStatus): Promise<void> {
    const filter = status === undefined ? '' : `&status=${status}`
    const pets = (await this.send(`/pets?limit=100${filter}`)).pets()
    for (let missing = count - pets.length; missing > 0; missing--) {
      await this.addPet(status === undefined ? {} : { status: JSON.stringify(status) })
    }
  }
}
