import type { Check } from '../conform/check.ts'
import { type Counts, countsOf, reportJson } from '../conform/report.ts'
import { conform, type Result } from '../conform/run.ts'
import type { Command, Given } from './arguments.ts'
import { exitCode, type Io, UsageError, visible } from './output.ts'
import { readServer } from './pets.ts'

export const conformCommand: Command = {
  name: 'conform',
  summary: 'Check any server against the interface; exit code 1 if a check fails',
  arguments: [{ name: 'url', help: 'the base URL of a server, such as http://127.0.0.1:8080/v1' }],
  options: [
    {
      flag: '--key <key>',
      help: 'An API key of the server. Prefer the variable: other users can see flags in the process list',
      variable: 'PETSTORE_API_KEY',
    },
    { flag: '--strict', help: 'Also check the decisions of this project where the interface is silent' },
    { flag: '--read-only', help: 'Send only GET and HEAD; skip the checks that add animals' },
    { flag: '--json', help: 'Print one JSON document' },
  ],
  examples: ['petstore conform http://127.0.0.1:8080/v1 --strict'],
  run: runConform,
}

async function runConform({ flags, values: [url = ''] }: Given, io: Io): Promise<number> {
  const options = { strict: flags['--strict'] !== undefined, readOnly: flags['--read-only'] !== undefined }
  const problems: string[] = []
  const givenKey = flags['--key'] ?? io.env['PETSTORE_API_KEY']
  const { baseUrl, apiKey: key } = readServer('<url>', url, givenKey, problems, io.program)
  if (problems.length > 0) throw new UsageError(...problems)
  const isJson = flags['--json'] !== undefined
  const print = createPrinter(io)
  const results = await conform({ baseUrl, key, readOnly: options.readOnly }, options, async result => {
    if (!isJson) await print(result)
  })
  await io.out(isJson ? reportJson({ url: baseUrl, ...options }, results) : summary(baseUrl, results))
  return countsOf(results).failed === 0 ? exitCode.success : exitCode.failure
}

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

const marks = {
  passed: { mark: '✓', colour: 32 },
  failed: { mark: '✗', colour: 31 },
  skipped: { mark: '-', colour: 33 },
} as const

export function resultLines({ check, finding }: Omit<Result, 'ms'>, isColoured: boolean): string {
  const { mark, colour } = marks[finding.outcome]
  const line = `${isColoured ? `\x1b[${colour}m${mark}\x1b[0m` : mark} ${check.name}`
  if (finding.outcome === 'passed') return `${line}\n`
  if (finding.outcome === 'skipped') return `${line} (skipped: ${finding.why})\n`
  const [expected, found] = [visible(finding.expected), visible(finding.found)]
  return `${line}\n    expected: ${expected}\n    found:    ${found}\n    rule:     ${check.where}\n`
}

function summary(baseUrl: string, results: readonly Result[]): string {
  const countsText = ({ passed, failed, skipped }: Counts) =>
    `${passed} passed, ${failed} failed, ${skipped} skipped`
  const hasDecisions = results.some(({ check }) => check.rule === 'decision')
  const decisions = hasDecisions ? `; decisions: ${countsText(countsOf(results, 'decision'))}` : ''
  return `\n${baseUrl}: contract: ${countsText(countsOf(results, 'contract'))}${decisions}\n`
}
