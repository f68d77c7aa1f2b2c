import { whenReady } from '../awaitable.ts'
import type { KeyStore, PetStore, StoreActivity } from '../store.ts'
import type { Answer } from './answer.ts'
import { type Authenticator, type Caller, permissionRefusal } from './authenticate.ts'
import type { Metrics } from './metrics.ts'
import type { Passage } from './observe.ts'
import type { Site } from './site.ts'

export interface OperatorParts {
  readonly pets: PetStore
  readonly keys: KeyStore
  readonly authenticator: Authenticator
  /** Called with each key that was accepted. */
  admitted(caller: Caller, passage: Passage): void
  readonly metrics: Metrics
  readonly activity?: (() => StoreActivity) | undefined
  isDraining(): boolean
}

/** The store has to answer by then to count as ready. */
const storeMs = 2_000

/** What whoever runs the service looks at. Health needs no key and says no more than it must; the metrics need one. */
export function operatorSite({
  pets,
  keys,
  authenticator,
  admitted,
  metrics,
  activity,
  isDraining,
}: OperatorParts): Site {
  return new Map([
    ['/livez', () => plain(200, 'ok')],
    ['/readyz', () => (isDraining() ? plain(503, 'draining') : storeHealth(pets, keys))],
    [
      '/metrics',
      (request: Request, passage: Passage) =>
        whenReady(authenticator.authenticate(request.headers.get('authorization')), judged => {
          if (!judged.ok) return judged.answer
          admitted(judged.caller, passage)
          const refusal = permissionRefusal(judged.caller, 'metrics')
          return refusal ?? plain(200, metrics.render(activity?.()), '; version=0.0.4')
        }),
    ],
  ])
}

/** Animals and keys may come from different servers; nobody is served without both. */
async function storeHealth(pets: PetStore, keys: KeyStore): Promise<Answer> {
  const { promise: late, resolve } = Promise.withResolvers<'late'>()
  const timer = setTimeout(resolve, storeMs, 'late')
  try {
    const outcome = await Promise.race([Promise.all([pets.list({ limit: 1 }), keys.find('')]), late])
    return outcome === 'late' ? plain(503, 'store') : plain(200, 'ok')
  } catch {
    return plain(503, 'store')
  } finally {
    clearTimeout(timer)
  }
}

function plain(status: number, text: string, parameters = ''): Answer {
  return { status, body: text, headers: { 'Content-Type': `text/plain${parameters}; charset=utf-8` } }
}
