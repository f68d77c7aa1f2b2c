import type { Command } from 'commander'
import type { Check } from '../conform/check.ts'
import { type Counts, conform, countsOf, type Result, reportJson } from '../conform/run.ts'
import { exitCode, type Io, Misuse } from './io.ts'
import { visible } from './visible.ts'

interface ConformOptions {
  readonly key?: string
  readonly strict?: true
  readonly readOnly?: true
  readonly json?: true
}

const description = 'check any server against the interface: a line a check, exit 1 if one fails'

export function addConformCommand(program: Command, io: Io, ended: (code: number) => void): void {
  program
    .command('conform')
    .description(description)
    .summary(description)
    .argument('<url>', 'the base address of the server, such as http://127.0.0.1:8080/v1')
    .option(
      '--key <key>',
      'a key that the server accepts; the process list shows a flag, so prefer the variable [PETSTORE_API_KEY]',
    )
    .option('--strict', 'check what we decided where the interface is silent, too')
    .option('--read-only', 'send nothing but GET and HEAD, and skip the checks that add animals')
    .option('--json', 'for programs: one JSON document')
    .action(async (url: string, options: ConformOptions) => ended(await runConform(url, options, io)))
}

async function runConform(url: string, options: ConformOptions, io: Io): Promise<number> {
  const { strict = false, readOnly = false, json = false } = options
  const { baseUrl, key } = readTarget(url, options, io)
  const print = createPrinter(io)
  const results = await conform({ baseUrl, key, readOnly }, { strict }, async result => {
    if (!json) await print(result)
  })
  if (json) await io.out(visibleLines(reportJson({ url: baseUrl, strict, readOnly }, results)))
  else await io.out(summary(baseUrl, results))
  return countsOf(results).failed === 0 ? exitCode.success : exitCode.failure
}

const addressForm =
  'an http or https address without user, query or fragment, such as http://127.0.0.1:8080/v1'

/** All mistakes together. Neither is shown: an address may hold a password, and the key is a secret. */
function readTarget(url: string, options: ConformOptions, io: Io): { baseUrl: string; key: string } {
  const problems: string[] = []
  const baseUrl = baseUrlOf(url)
  const key = options.key ?? io.env['PETSTORE_API_KEY']
  if (baseUrl === undefined) problems.push(`Cannot read the address: expected ${addressForm}`)
  if (!key) problems.push('The key is missing: set PETSTORE_API_KEY, or give --key')
  else if (!/^[\x21-\x7e]+$/.test(key)) problems.push('Cannot use the key: expected visible ASCII characters')
  if (baseUrl === undefined || !key || problems.length > 0) throw new Misuse(problems)
  return { baseUrl, key }
}

function baseUrlOf(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    return undefined
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

const headings = {
  contract: 'The contract: what the interface says',
  decision: 'Our decisions: where the interface is silent',
}

/** A line for each check, and a heading where another kind of rule begins. */
function createPrinter(io: Io): (result: Result) => Promise<void> {
  const coloured = process.stdout.isTTY === true && !io.env['NO_COLOR']
  let current: Check['rule'] | undefined
  return async result => {
    const { rule } = result.check
    const heading = rule === current ? '' : `${current === undefined ? '' : '\n'}${headings[rule]}\n`
    current = rule
    await io.out(`${heading}${resultLines(result, coloured)}`)
  }
}

const marks = {
  passed: { mark: '✓', colour: 32 },
  failed: { mark: '✗', colour: 31 },
  skipped: { mark: '-', colour: 33 },
} as const

export function resultLines({ check, finding }: Omit<Result, 'ms'>, coloured: boolean): string {
  const { mark, colour } = marks[finding.outcome]
  const line = `${coloured ? `\x1b[${colour}m${mark}\x1b[0m` : mark} ${check.name}`
  if (finding.outcome === 'passed') return `${line}\n`
  if (finding.outcome === 'skipped') return `${line} (skipped: ${finding.why})\n`
  return `${line}\n    expected: ${visible(finding.expected)}\n    found:    ${visible(finding.found)}\n    rule:     ${check.where}\n`
}

function summary(baseUrl: string, results: readonly Result[]): string {
  const kinds = [`contract: ${counted(countsOf(results, 'contract'))}`]
  if (results.some(({ check }) => check.rule === 'decision')) {
    kinds.push(`decisions: ${counted(countsOf(results, 'decision'))}`)
  }
  return `\n${baseUrl}: ${kinds.join('; ')}\n`
}

function counted({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`
}

/** Escapes text that the server sent; it stays the same JSON. */
function visibleLines(json: string): string {
  return json.split('\n').map(visible).join('\n')
}
