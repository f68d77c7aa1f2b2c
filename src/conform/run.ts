// Runs the checks against a server.

import { SetupError } from '../errors.ts'
import { type Check, Failed, Probe, Skipped, type Target } from './check.ts'
import { contractChecks } from './contract.ts'

type Finding =
  | { readonly outcome: 'passed' }
  | { readonly outcome: 'failed'; readonly expected: string; readonly found: string }
  | { readonly outcome: 'skipped'; readonly why: string }

export interface Result {
  readonly check: Check
  readonly finding: Finding
}

/** At most this many animals are added to a server that refuses invalid ones. */
export const addedMax = 30
const shownCharsMax = 400

/**
 * Checks a server against the interface, one check after another. Throws SetupError if nothing can be checked; its
 * cause is the error of `fetch`, if there was one. No result contains the key. Findings quote the server: escape them
 * for a terminal. If `beforeWriting` rejects, nothing is written.
 */
export async function conform(
  target: Target,
  beforeWriting?: () => Promise<void>,
  onResult?: (result: Result) => unknown,
) {
  await expectReachable(target)
  if (!target.readOnly) await beforeWriting?.()
  const probe = new Probe(target)
  const results: Result[] = []
  for (const check of contractChecks) {
    const result = { check, finding: await runCheck(check, probe) }
    results.push(result)
    await onResult?.(result)
  }
  return results
}

/** One error instead of a failure of every check. */
async function expectReachable(target: Target): Promise<void> {
  const { baseUrl } = target
  const { response } = await new Probe(target).send('/pets?limit=1').catch((error: Error) => {
    const advice = error.cause ? 'check the address and that the server is running' : error.message
    throw new SetupError(`Cannot reach ${baseUrl}: ${advice}`, { cause: error.cause })
  })
  if (response.status === 401) throw new SetupError(`${baseUrl} refuses the key (401): check it for typos`)
  if (response.status !== 404) return
  throw new SetupError(`${baseUrl}/pets does not exist (404): check the address`)
}

async function runCheck(check: Check, probe: Probe): Promise<Finding> {
  const cause = check.needs.map(need => probe.failed.get(need)).find(failed => failed !== undefined)
  if (cause) {
    probe.failed.set(check, cause)
    return { outcome: 'skipped', why: `depends on the failed check: ${cause.name}` }
  }
  try {
    await check.run(probe)
    return { outcome: 'passed' }
  } catch (error) {
    if (error instanceof Skipped) return { outcome: 'skipped', why: error.message }
    if (!(error instanceof Failed)) throw error
    probe.failed.set(check, check)
    // A server may send the key back, or long text.
    const show = (text: string) => text.replaceAll(probe.target.key, '[key]').slice(0, shownCharsMax)
    return { outcome: 'failed', expected: show(error.expected), found: show(error.found) }
  }
}
