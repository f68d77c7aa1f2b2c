import type { Probe } from './probe.ts'

/** What became of one check. */
export type Finding =
  | { readonly outcome: 'passed' }
  | { readonly outcome: 'failed'; readonly expected: string; readonly found: string }
  | { readonly outcome: 'skipped'; readonly why: string }

/** One rule, held against a server. It depends on no other check, and on nothing that the catalogue may hold. */
export interface Check {
  readonly name: string
  /** `contract`: the interface says so. `decision`: what we chose where it is silent; others may choose otherwise. */
  readonly rule: 'contract' | 'decision'
  /** Where the rule can be read. */
  readonly where: string
  /** It sends more than GET and HEAD. */
  readonly writes?: true
  /** Never rejects for what a server does. */
  run(probe: Probe): Promise<Finding>
}

/** Thrown by what a check is made of, so that the check itself reads like its rule; caught where the check is run. */
class Ended extends Error {
  override readonly name = 'Ended'
  readonly finding: Finding

  constructor(finding: Finding) {
    super(finding.outcome)
    this.finding = finding
  }
}

export function fail(expected: string, found: string): never {
  throw new Ended({ outcome: 'failed', expected, found })
}

/** For a check that this server or this run gives no occasion for. */
export function skip(why: string): never {
  throw new Ended({ outcome: 'skipped', why })
}

type Body = (probe: Probe) => Promise<void>

interface Rules {
  /** A check that only reads. Where it needs animals that are not there it adds them, if the run may write. */
  reads(name: string, body: Body): Check
  writes(name: string, body: Body): Check
}

/** Makes the checks of one part of the interface: a body that comes to its end has passed. */
export function rules(rule: Check['rule'], where: string): Rules {
  return {
    reads: (name, body) => ({ name, rule, where, run: probe => findingOf(body, probe) }),
    writes: (name, body) => ({
      name,
      rule,
      where,
      writes: true,
      run: async probe => (probe.readOnly ? notInThisRun : await findingOf(body, probe)),
    }),
  }
}

const notInThisRun: Finding = { outcome: 'skipped', why: 'it writes, and this run only reads' }

async function findingOf(body: Body, probe: Probe): Promise<Finding> {
  try {
    await body(probe)
    return { outcome: 'passed' }
  } catch (error) {
    if (error instanceof Ended) return error.finding
    throw error
  }
}
