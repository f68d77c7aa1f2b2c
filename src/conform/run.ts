// Runs the checks against a server.

import { SetupError } from '../errors.ts'
import { type Check, contractChecks } from './contract.ts'
import { Failed, Probe, Skipped, type Target } from './probe.ts'

type Finding =
  | { readonly outcome: 'passed' }
  | { readonly outcome: 'failed'; readonly expected: string; readonly found: string }
  | { readonly outcome: 'skipped'; readonly why: string }

/** `where` is the rule that the check is about. */
export type Result = { readonly name: string; readonly where: string } & Finding

/** At most this many animals are added to a server that refuses invalid ones. */
export const addedMax = 30
const shownCharsMax = 400

/** One error instead of a failure of every check. Its cause is the error of `fetch`, if there was one. */
export async function expectReachable(target: Target): Promise<void> {
  const { baseUrl } = target
  const { status } = await new Probe(target).send({ path: '/pets?limit=1' }).catch((error: Error) => {
    const advice = error.cause ? 'check the address and that the server is running' : error.message
    throw new SetupError(`Cannot reach ${baseUrl}: ${advice}`, { cause: error.cause })
  })
  if (status === 401) throw new SetupError(`${baseUrl} refuses the key (401): check it for typos`)
  if (status !== 404) return
  throw new SetupError(`${baseUrl}/pets does not exist (404): check the address`)
}

/**
 * Checks a server against the interface, one check after another. No result contains the key. Results quote the server:
 * escape them for a terminal.
 */
export async function* conform(target: Target): AsyncGenerator<Result> {
  const probe = new Probe(target)
  let cause: Check | undefined
  for (const check of contractChecks) {
    const skipped = cause && { outcome: 'skipped' as const, why: `depends on the failed check: ${cause.name}` }
    const finding = skipped ?? (await runCheck(check, probe))
    if (check.isEssential && finding.outcome === 'failed') cause = check
    yield { name: check.name, where: `docs/interface.md, ${check.section}`, ...finding }
  }
}

async function runCheck({ run }: Check, probe: Probe): Promise<Finding> {
  try {
    await run(probe)
    return { outcome: 'passed' }
  } catch (error) {
    if (error instanceof Skipped) return { outcome: 'skipped', why: error.message }
    if (!(error instanceof Failed)) throw error
    // A server may send the key back, or long text.
    const { key } = probe.target
    const inJson = JSON.stringify(key).slice(1, -1)
    const show = (text: string) => text.replaceAll(key, '[key]').replaceAll(inJson, '[key]').slice(0, shownCharsMax)
    return { outcome: 'failed', expected: show(error.expected), found: show(error.found) }
  }
}
