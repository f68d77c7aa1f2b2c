export type WorkloadName = 'list' | 'list-1' | 'list-512' | 'filtered' | 'deep' | 'get' | 'create' | 'keyed' | 'mix'

export interface Workload {
  readonly name: WorkloadName
  readonly title: string
  readonly connections: number
  /** Not part of a quick run. */
  readonly slow?: true
}

export const workloads: readonly Workload[] = [
  { name: 'list', title: 'List of 20', connections: 64 },
  { name: 'list-1', title: 'List of 20, 1 connection', connections: 1, slow: true },
  { name: 'list-512', title: 'List of 20, 512 connections', connections: 512, slow: true },
  { name: 'filtered', title: 'List of 100 by status', connections: 64 },
  { name: 'deep', title: 'List of 20, deep', connections: 64, slow: true },
  { name: 'get', title: 'Get one', connections: 64 },
  { name: 'create', title: 'Durable create', connections: 64 },
  { name: 'keyed', title: 'Durable create with an idempotency key', connections: 64 },
  { name: 'mix', title: 'Mix 90/8/2', connections: 64 },
]

export function selectWorkloads(...names: readonly WorkloadName[]): readonly Workload[] {
  return workloads.filter(({ name }) => names.includes(name))
}

/** Where a contender serves each kind of request. */
export interface Paths {
  readonly pets: string
  /** An animal, with its id as `%d`; by default below `pets`. */
  readonly pet?: string
  readonly list: string
  readonly filtered?: string
  /** The page after an id. */
  deep?(after: number): string
}

/** What a load program sends, over and over. */
export interface Requests {
  /** `keyed`: creations, each with an idempotency key of its own. */
  readonly kind: 'read' | 'get' | 'create' | 'keyed' | 'mix'
  readonly petsPath: string
  /** With the id as `%d` or `%015d`. */
  readonly petFormat: string
  readonly listPath: string
  /** `get` asks for ids spread over this range, so caching the last animal gains nothing. */
  readonly fromId: number
  readonly toId: number
}

const kinds = ['get', 'create', 'keyed', 'mix'] as const

export function requestsFor(paths: Paths, workload: WorkloadName, animals: number): Requests {
  // Ids of the most common length: these responses are as long as the one of the fixed-bytes servers.
  const fromId = 10 ** Math.floor(Math.log10(animals / 2))
  return {
    kind: kinds.find(kind => kind === workload) ?? 'read',
    petsPath: paths.pets,
    petFormat: paths.pet ?? `${paths.pets}/%d`,
    listPath: listPath(paths, workload, animals),
    fromId,
    toId: Math.min(fromId * 10, animals) - 1,
  }
}

export function petPath(format: string, id: number): string {
  return format.replace(/%0?(\d*)d/, (_, width) => String(id).padStart(Number(width), '0'))
}

export function listPath(paths: Paths, workload: WorkloadName, animals: number): string {
  if (workload === 'filtered') return paths.filtered ?? paths.list
  if (workload === 'deep') return paths.deep?.(deepAfter(animals)) ?? paths.list
  return paths.list
}

/** The deep page starts after a million animals, or near the end of a smaller catalogue. */
export function deepAfter(animals: number): number {
  return animals > 1_000_100 ? 1_000_000 : animals - 100
}
