import { SetupError } from '../errors.ts'
import { type Check, Probe, type Target } from './check.ts'
import { contractChecks } from './contract.ts'
import { decisionChecks } from './decisions.ts'
import type { Finding } from './exchange.ts'

export const checks: readonly Check[] = [...contractChecks, ...decisionChecks]

export interface Result {
  readonly check: Check
  readonly finding: Finding
  readonly ms: number
}

/**
 * Checks a server against the interface and, with `strict`, against our decisions, one check after another. Throws
 * SetupError if nothing can be checked. No result contains the key. Findings quote the server: escape them for a terminal.
 */
export async function conform(
  target: Target,
  { strict }: { readonly strict: boolean },
  onResult?: (result: Result) => Promise<void>,
): Promise<readonly Result[]> {
  await expectReachable(target)
  const probe = new Probe(target)
  const results: Result[] = []
  for (const check of strict ? checks : contractChecks) {
    const startMs = performance.now()
    const finding = presentable(await check.run(probe), target.key)
    const result = { check, finding, ms: Math.round(performance.now() - startMs) }
    results.push(result)
    await onResult?.(result)
  }
  return results
}

/** One error instead of a failure of every check. */
async function expectReachable({ baseUrl, key }: Target): Promise<void> {
  const headers = { Authorization: `Bearer ${key}` }
  const signal = AbortSignal.timeout(10_000)
  let status: number
  try {
    status = (await fetch(`${baseUrl}/pets?limit=1`, { headers, signal, redirect: 'manual' })).status
  } catch (cause) {
    throw new SetupError(`Cannot reach ${baseUrl}: check the address and that the server is running`, {
      cause,
    })
  }
  if (status === 401) throw new SetupError(`${baseUrl} refuses the key (401): check it for typos`)
  if (status === 404) {
    throw new SetupError(`${baseUrl}/pets does not exist (404): expected a base address such as …/v1`)
  }
}

const shownCharsMax = 300

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

export interface Run {
  readonly url: string
  readonly strict: boolean
  readonly readOnly: boolean
}

/** One JSON document. */
export function reportJson(run: Run, results: readonly Result[]): string {
  const entries = results.map(({ check: { name, rule, where }, finding, ms }) => ({
    name,
    rule,
    where,
    ...finding,
    ms,
  }))
  return `${JSON.stringify({ ...run, summary: countsOf(results), checks: entries }, null, 2)}\n`
}
