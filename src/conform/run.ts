import { SetupError } from '../errors.ts'
import { type Check, Failed, Probe, Skipped, type Target } from './check.ts'
import { contractChecks } from './contract.ts'

/** The outcome of a check. */
type Finding =
  | { readonly outcome: 'passed' }
  | { readonly outcome: 'failed'; readonly expected: string; readonly found: string }
  | { readonly outcome: 'skipped'; readonly why: string }

export interface Result {
  readonly check: Check
  readonly finding: Finding
  readonly ms: number
}

/** At most this many animals are added to a server that refuses invalid ones. */
export const addedMax = 30

interface RunOptions {
  /** Called before the first request that writes. If it rejects, nothing is written. */
  readonly beforeWriting?: () => Promise<void>
  readonly onResult?: (result: Result) => Promise<void>
}

/**
 * Checks a server against the interface, one check after another. Throws SetupError if nothing can be checked. No result
 * contains the key. Findings quote the server: escape them for a terminal.
 */
export async function conform(
  target: Target,
  { beforeWriting, onResult }: RunOptions = {},
): Promise<readonly Result[]> {
  await expectReachable(target)
  if (!target.readOnly) await beforeWriting?.()
  const probe = new Probe(target)
  const results: Result[] = []
  for (const check of contractChecks) {
    const startMs = performance.now()
    const finding = await findingOf(check, probe)
    if (finding.outcome === 'failed') probe.failed.add(check)
    const result = { check, finding, ms: Math.round(performance.now() - startMs) }
    results.push(result)
    await onResult?.(result)
  }
  return results
}

/** One error instead of a failure of every check. */
async function expectReachable({ baseUrl, key }: Target): Promise<void> {
  const request = { headers: { Authorization: `Bearer ${key}` }, signal: AbortSignal.timeout(10_000) }
  const response = fetch(`${baseUrl}/pets?limit=1`, { ...request, redirect: 'manual' })
  const { status } = await response.catch(cause => {
    throw new SetupError(`Cannot reach ${baseUrl}: check the address and that the server is running`, { cause })
  })
  if (status === 401) throw new SetupError(`${baseUrl} refuses the key (401): check it for typos`)
  if (status === 429) throw new SetupError(`The rate limit of ${baseUrl} is reached (429): try again later`)
  if (status !== 404) return
  throw new SetupError(`${baseUrl}/pets does not exist (404): expected a base address such as …/v1`)
}

async function findingOf(check: Check, probe: Probe): Promise<Finding> {
  try {
    await check.run(probe)
    return { outcome: 'passed' }
  } catch (error) {
    if (error instanceof Skipped) return { outcome: 'skipped', why: error.message }
    if (!(error instanceof Failed)) throw error
    const cause = failedNeedOf(check, probe.failed)
    if (cause) return { outcome: 'skipped', why: `depends on the failed check: ${cause.name}` }
    const { key } = probe.target
    return { outcome: 'failed', expected: presentable(error.expected, key), found: presentable(error.found, key) }
  }
}

/** A failed check among those that this one needs, directly or not. */
function failedNeedOf({ needs }: Check, failed: ReadonlySet<Check>): Check | undefined {
  for (const need of needs) {
    const found = failed.has(need) ? need : failedNeedOf(need, failed)
    if (found) return found
  }
  return undefined
}

const shownCharsMax = 400

/** Masks the key and shortens what the server sent. */
function presentable(text: string, key: string): string {
  const spellings = [key, JSON.stringify(key).slice(1, -1), encodeURIComponent(key)]
  const masked = spellings.reduce((rest, spelling) => rest.replaceAll(spelling, '[key]'), text)
  return `${masked.slice(0, shownCharsMax).toWellFormed()}${masked.length > shownCharsMax ? '…' : ''}`
}

export function countsOf(results: readonly Result[]): Record<Finding['outcome'], number> {
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const { finding } of results) counts[finding.outcome]++
  return counts
}

/** One JSON document. */
export function reportJson(run: { url: string; readOnly: boolean }, results: readonly Result[]): string {
  const checks = results.map(({ check, finding, ms }) => ({ name: check.name, where: whereOf(check), ...finding, ms }))
  return `${JSON.stringify({ ...run, summary: countsOf(results), checks }, null, 2)}\n`
}

export function whereOf({ section }: Check): string {
  return `docs/interface.md, ${section}`
}
