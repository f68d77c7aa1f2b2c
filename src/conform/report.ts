import type { Check, Finding } from './check.ts'
import type { Result } from './run.ts'

/** How many checks of one kind ended how. */
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

/** For programs: one document. */
export function reportJson(run: Run, results: readonly Result[]): string {
  const checks = results.map(({ check: { name, rule, where }, finding, ms }) => ({
    name,
    rule,
    where,
    ...finding,
    ms,
  }))
  return `${JSON.stringify({ ...run, summary: countsOf(results), checks }, null, 2)}\n`
}

/** JUnit's XML, as build servers read it: a suite for each kind of rule. */
export function reportJunit(results: readonly Result[]): string {
  const suites = (['contract', 'decision'] as const).flatMap(rule => {
    const own = results.filter(({ check }) => check.rule === rule)
    return own.length > 0 ? [suite(rule, own)] : []
  })
  const head = `<testsuites name="petstore conform" ${totals(results)}>`
  return `<?xml version="1.0" encoding="UTF-8"?>\n${head}\n${suites.join('\n')}\n</testsuites>\n`
}

function suite(rule: Check['rule'], results: readonly Result[]): string {
  const cases = results.map(testcase).join('\n')
  return `  <testsuite name="${rule}" ${totals(results)}>\n${cases}\n  </testsuite>`
}

function totals(results: readonly Result[]): string {
  const { failed, skipped } = countsOf(results)
  const ms = results.reduce((sum, result) => sum + result.ms, 0)
  return `tests="${results.length}" failures="${failed}" errors="0" skipped="${skipped}" time="${ms / 1_000}"`
}

function testcase({ check: { name, rule, where }, finding, ms }: Result): string {
  const start = `    <testcase classname="${rule}" name="${xml(name)}" time="${ms / 1_000}"`
  if (finding.outcome === 'passed') return `${start}/>`
  if (finding.outcome === 'skipped') return `${start}><skipped message="${xml(finding.why)}"/></testcase>`
  const { expected, found } = finding
  const detail = xml(`expected: ${expected}\nfound: ${found}\nrule: ${where}`)
  return `${start}><failure message="${xml(`expected ${expected}`)}">${detail}</failure></testcase>`
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Control characters have been made visible before: XML knows no way to write most of them. */
function xml(text: string): string {
  return text.replace(/[&<>"]/g, char => entities[char] ?? char)
}
