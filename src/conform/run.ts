import { SetupError } from '../errors.ts'
import type { Check } from './check.ts'
import { contractChecks } from './contract.ts'
import { decisionChecks } from './decisions.ts'
import { type Finding, Probe, type Target } from './exchange.ts'

export const checks: readonly Check[] = [...contractChecks, ...decisionChecks]

export interface Result {
  readonly check: Check
  readonly finding: Finding
  readonly ms: number
}

/** At most this many animals are added to a server that refuses invalid ones. */
export const addedMax = { contract: 30, strict: 45 }

interface RunOptions {
  readonly strict: boolean
  /** Called before the first request that writes. If it rejects, nothing is written. */
  readonly beforeWriting?: () => Promise<void>
  readonly onResult?: (result: Result) => Promise<void>
}

/**
 * Checks a server against the interface and, with `strict`, against our decisions, one check after another. Throws
 * SetupError if nothing can be checked. No result contains the key. Findings quote the server: escape them for a terminal.
 */
export async function conform(
  target: Target,
  { strict, beforeWriting, onResult }: RunOptions,
): Promise<readonly Result[]> {
  await expectReachable(target)
  if (!target.readOnly) await beforeWriting?.()
  const probe = new Probe(target)
  const results: Result[] = []
  for (const check of strict ? checks : contractChecks) {
    const startMs = performance.now()
    const finding = presentable(await check.run(probe), target.key)
    if (finding.outcome === 'failed') probe.failed.add(check.name)
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

const shownCharsMax = 400

/** Masks the key and shortens what the server sent. */
function presentable(finding: Finding, key: string): Finding {
  if (finding.outcome !== 'failed') return finding
  const spellings = [key, JSON.stringify(key).slice(1, -1), encodeURIComponent(key)]
  const short = (text: string) => {
    const masked = spellings.reduce((rest, spelling) => rest.replaceAll(spelling, '[key]'), text)
    return `${masked.slice(0, shownCharsMax).toWellFormed()}${masked.length > shownCharsMax ? '…' : ''}`
  }
  return { ...finding, expected: short(finding.expected), found: short(finding.found) }
}

export type Counts = Readonly<Record<Finding['outcome'], number>>

export function countsOf(results: readonly Result[], rule?: Check['rule']): Counts {
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const { check, finding } of results) {
    if (rule === undefined || check.rule === rule) counts[finding.outcome]++
  }
  return counts
}

/** One JSON document. */
export function reportJson(
  run: { url: string; strict: boolean; readOnly: boolean },
  results: readonly Result[],
): string {
  const entries = results.map(({ check: { name, rule, where }, finding, ms }) => ({
    name,
    rule,
    where,
    ...finding,
    ms,
  }))
  return `${JSON.stringify({ ...run, summary: countsOf(results), checks: entries }, null, 2)}\n`
}
