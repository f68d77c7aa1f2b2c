import { CheckEnded, type Fields, type Finding, type JsonObject, type Probe, type Sendable } from './exchange.ts'

/** One rule. It accepts any content of the catalogue, and runs alone or after others. */
export interface Check {
  readonly name: string
  /** `contract`: the interface requires it. `decision`: our choice where the interface is silent. */
  readonly rule: 'contract' | 'decision'
  /** The section of the documentation with the rule. */
  readonly where: string
  /** Rejects only with SetupError, if the key may not write. */
  run(probe: Probe): Promise<Finding>
}

type CheckBody = (probe: Probe) => Promise<unknown>
type NamedBodies = Readonly<Record<string, CheckBody>>

/** The checks by section of docs/interface.md and by name. A check passes if its body returns. */
export function checksOf(rule: Check['rule'], sections: Readonly<Record<string, NamedBodies>>): readonly Check[] {
  return Object.entries(sections).flatMap(([heading, bodies]) => {
    const where = `docs/interface.md, ${heading}`
    return Object.entries(bodies).map(([name, body]) => ({ name, rule, where, run: probe => findingOf(body, probe) }))
  })
}

async function findingOf(body: CheckBody, probe: Probe): Promise<Finding> {
  try {
    await body(probe)
    return { outcome: 'passed' }
  } catch (error) {
    if (error instanceof CheckEnded) return error.finding
    throw error
  }
}

/** A check for each of the values. */
export function forEach<T>(
  values: readonly T[],
  checkOf: (value: T) => readonly [name: string, CheckBody],
): NamedBodies {
  return Object.fromEntries(values.map(checkOf))
}

/** A function makes its request when the check runs. */
type Sent = Sendable | ((probe: Probe) => Promise<Sendable>)

/** The server refuses each of the requests with this status. Other checks judge the Error. */
export function refuses(
  what: string,
  status: number,
  sent: Sent | readonly Sent[],
  needed: readonly string[] = [],
): NamedBodies {
  return sendEach(`${what} is ${status}`, sent, (probe, request) => probe.refused(request, status, needed))
}

/** The server refuses each of the requests. One check reports all refusals with another 4xx than this. */
export function refusesWith4xx(what: string, status: number, sent: Sent | readonly Sent[]): NamedBodies {
  return sendEach(`${what} is refused`, sent, (probe, request) => probe.refusedWith4xx(request, status, what))
}

function sendEach(
  name: string,
  sent: Sent | readonly Sent[],
  judge: (probe: Probe, request: Sendable) => Promise<unknown>,
): NamedBodies {
  const body: CheckBody = async probe => {
    for (const one of [sent].flat()) await judge(probe, typeof one === 'function' ? await one(probe) : one)
  }
  return { [name]: body }
}

/** A creation with these fields is 201 with a Pet that has the expected values. */
export function creates(name: string, fields: Fields, expected: JsonObject): NamedBodies {
  return {
    [name]: async probe => {
      const created = await probe.create(fields)
      created.expectValues(created.object(), expected)
    },
  }
}
