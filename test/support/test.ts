import { test as bunTest, setDefaultTimeout } from 'bun:test'
import { AsyncLocalStorage } from 'node:async_hooks'
import { availableParallelism, loadavg } from 'node:os'

/** Something that explains a failure: the output of a program, the log of a service, the seed of random inputs. */
interface Evidence {
  readonly title: string
  readonly text: () => string
}

const linesMax = 100
let limitMs = 0
/** Of what was started outside of a test: in `beforeAll` or `beforeEach`. */
const evidenceOfFile = new Set<Evidence>()
const evidenceOfTest = new AsyncLocalStorage<Set<Evidence>>()

/** For the tests of this file that set no limit of their own. */
export function setTestLimit(ms: number): void {
  limitMs = ms
  setDefaultTimeout(ms)
}

/** The test that is running now shows this if it fails. Gives the way to forget what a whole file shares. */
export function showOnFailure(title: string, text: () => string): () => void {
  const evidence = { title, text }
  const kept = evidenceOfTest.getStore() ?? evidenceOfFile
  kept.add(evidence)
  return () => void evidenceOfFile.delete(evidence)
}

/** Like Bun's, but a failed test also prints what its servers logged, and how busy the machine was. */
export const test = reporting(bunTest)

/** Wraps the body of every test that is declared with it, or with what it gives: `test.concurrent.each(rows)`. */
function reporting<T extends object>(declare: T, owner?: object): T {
  return new Proxy(declare, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? reporting(value, target) : value
    },
    apply(target, _self, args: unknown[]) {
      const [name, body, limit] = args
      const isTest = typeof name === 'string' && typeof body === 'function'
      const ownMs = typeof limit === 'number' ? limit : undefined
      const given = isTest ? [name, reported(name, body as Body, ownMs), ...args.slice(2)] : args
      const declared: unknown = Reflect.apply(target as Body, owner, given)
      return typeof declared === 'function' ? reporting(declared) : declared
    },
  })
}

type Body = (...args: unknown[]) => unknown

const reported =
  (name: string, body: Body, ownMs: number | undefined) =>
  (...args: unknown[]) => {
    const evidence = new Set<Evidence>()
    return evidenceOfTest.run(evidence, async () => {
      // Bun ends a test that is late without a word to it.
      const late = setTimeout(() => report('Late', name, evidence), (ownMs ?? limitMs) - 500)
      try {
        await body(...args)
      } catch (error) {
        report('Failed', name, evidence)
        throw error
      } finally {
        clearTimeout(late)
      }
    })
  }

function report(what: 'Failed' | 'Late', name: string, evidence: ReadonlySet<Evidence>): void {
  const load = loadavg().map(average => average.toFixed(1))
  const parts = [`${what}: ${name}`, `Load of the machine: ${load.join(', ')} on ${availableParallelism()} cores`]
  for (const { title, text } of [...evidenceOfFile, ...evidence]) {
    const lines = text().trimEnd().split('\n')
    parts.push(`${title}:`, ...lines.slice(-linesMax).map(line => `  ${line.slice(0, 1_000)}`))
  }
  process.stderr.write(`${parts.join('\n')}\n`)
}
