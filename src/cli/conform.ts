import type { Check } from '../conform/check.ts'
import { type Counts, conform, countsOf, type Result, reportJson } from '../conform/run.ts'
import { command, switchOption } from './arguments.ts'
import { exitCode, type Io, visible } from './output.ts'
import { apiKeyOption, baseUrlOption } from './pets.ts'

export const conformCommand = command({
  name: 'conform',
  summary: 'Check any server against the interface; exit code 1 if a check fails',
  arguments: [
    { name: 'url', help: 'the base URL of a server, such as http://127.0.0.1:8080/v1', field: baseUrlOption },
  ],
  options: {
    key: { ...apiKeyOption, flag: '--key <key>' },
    strict: switchOption('--strict', 'Also check the decisions of this project where the interface is silent'),
    readOnly: switchOption('--read-only', 'Send only GET and HEAD; skip the checks that add animals'),
    json: switchOption('--json', 'Print one JSON document'),
  },
  examples: ['petstore conform http://127.0.0.1:8080/v1 --strict'],
  async run({ key, strict, readOnly, json }, [url = ''], io) {
    const baseUrl = baseUrlOption.read(url) ?? url
    const print = json ? async () => {} : createPrinter(io)
    const results = await conform({ baseUrl, key, readOnly }, { strict }, print)
    const lines = json ? reportJson({ url: baseUrl, strict, readOnly }, results) : summary(baseUrl, results)
    // Line breaks in a string of JSON are escaped already.
    await io.out(lines.split('\n').map(visible).join('\n'))
    return countsOf(results).failed === 0 ? exitCode.success : exitCode.failure
  },
})

const headings = {
  contract: 'Contract: what the interface says',
  decision: 'Decisions: what this project decided where the interface is silent',
}

/** Prints a line for each check, and a heading before each kind of rule. */
function createPrinter(io: Io): (result: Result) => Promise<void> {
  const isColoured = process.stdout.isTTY === true && !io.env['NO_COLOR']
  let current: Check['rule'] | undefined
  return async result => {
    const { rule } = result.check
    const heading = rule === current ? '' : `${current === undefined ? '' : '\n'}${headings[rule]}\n`
    current = rule
    await io.out(`${heading}${resultLines(result, isColoured)}`)
  }
}

const marks = { passed: '✓', failed: '✗', skipped: '-' }
const colours = { passed: 32, failed: 31, skipped: 33 }

export function resultLines({ check, finding }: Omit<Result, 'ms'>, isColoured: boolean): string {
  const mark = marks[finding.outcome]
  const line = `${isColoured ? `\x1b[${colours[finding.outcome]}m${mark}\x1b[0m` : mark} ${check.name}`
  if (finding.outcome === 'passed') return `${line}\n`
  if (finding.outcome === 'skipped') return `${line} (skipped: ${finding.why})\n`
  const [expected, found] = [visible(finding.expected), visible(finding.found)]
  return `${line}\n    expected: ${expected}\n    found:    ${found}\n    rule:     ${check.where}\n`
}

function summary(baseUrl: string, results: readonly Result[]): string {
  const countsText = ({ passed, failed, skipped }: Counts) => `${passed} passed, ${failed} failed, ${skipped} skipped`
  const hasDecisions = results.some(({ check }) => check.rule === 'decision')
  const decisions = hasDecisions ? `; decisions: ${countsText(countsOf(results, 'decision'))}` : ''
  return `\n${baseUrl}: contract: ${countsText(countsOf(results, 'contract'))}${decisions}\n`
}
