import { SetupError } from '../errors.ts'
import type { Check, Finding } from './check.ts'
import { answerChecks } from './contract/answers.ts'
import { createChecks } from './contract/create.ts'
import { credentialChecks } from './contract/credentials.ts'
import { getChecks } from './contract/get.ts'
import { listChecks } from './contract/list.ts'
import { refusalChecks } from './contract/refusals.ts'
import { bodyDecisions } from './decision/body.ts'
import { credentialDecisions } from './decision/credentials.ts'
import { fieldDecisions } from './decision/fields.ts'
import { headerDecisions } from './decision/headers.ts'
import { idempotencyDecisions } from './decision/idempotency.ts'
import { orderDecisions } from './decision/order.ts'
import { pagingDecisions } from './decision/paging.ts'
import { parameterDecisions } from './decision/parameters.ts'
import { createProbe, type Target } from './probe.ts'

/** Those that add animals come first: what they leave behind is enough for most of those that need some. */
export const checks: readonly Check[] = [
  ...credentialChecks,
  ...createChecks,
  ...refusalChecks,
  ...listChecks,
  ...getChecks,
  ...answerChecks,
  ...credentialDecisions,
  ...orderDecisions,
  ...bodyDecisions,
  ...fieldDecisions,
  ...parameterDecisions,
  ...pagingDecisions,
  ...headerDecisions,
  ...idempotencyDecisions,
]

export interface Result {
  readonly check: Check
  readonly finding: Finding
  readonly ms: number
}

/**
 * Holds a server against the interface and, with `strict`, against our decisions, one check after another.
 * Throws SetupError where nothing can be checked. The key is in no result.
 */
export async function conform(
  target: Target,
  { strict }: { readonly strict: boolean },
  onResult?: (result: Result) => Promise<void>,
): Promise<readonly Result[]> {
  await expectReachable(target)
  const probe = createProbe(target)
  const results: Result[] = []
  for (const check of checks) {
    if (check.rule === 'decision' && !strict) continue
    const startMs = performance.now()
    const finding = presentable(await check.run(probe), target.key)
    const result = { check, finding, ms: Math.round(performance.now() - startMs) }
    results.push(result)
    await onResult?.(result)
  }
  return results
}

/** Every check would fail for the same reason: that is said once, and instead of them. */
async function expectReachable({ baseUrl, key }: Target): Promise<void> {
  const headers = { Authorization: `Bearer ${key}` }
  const signal = AbortSignal.timeout(10_000)
  let status: number
  try {
    status = (await fetch(`${baseUrl}/pets?limit=1`, { headers, signal, redirect: 'manual' })).status
  } catch (cause) {
    throw new SetupError(`Cannot reach ${baseUrl}: check the address, and that the server runs`, { cause })
  }
  if (status === 401) throw new SetupError(`${baseUrl} refuses the key (401): check it, or get another one`)
  if (status === 404) {
    throw new SetupError(`Nothing is at ${baseUrl}/pets (404): expected a base address such as …/v1`)
  }
}

const shownCharsMax = 300

// What steers a terminal, breaks a line, turns the direction of writing, or cannot stand in XML.
const unseen = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]/gu

function presentable(finding: Finding, key: string): Finding {
  if (finding.outcome !== 'failed') return finding
  return { ...finding, expected: line(finding.expected, key), found: line(finding.found, key) }
}

/** On one line, short, without the key in any spelling: a server may send back all that it was sent. */
function line(text: string, key: string): string {
  const spellings = [key, JSON.stringify(key).slice(1, -1), encodeURIComponent(key)]
  const hidden = spellings.reduce((rest, spelling) => rest.replaceAll(spelling, '[key]'), text)
  const whole = hidden.toWellFormed().replace(unseen, escaped)
  return whole.length > shownCharsMax ? `${whole.slice(0, shownCharsMax).toWellFormed()}…` : whole
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}
