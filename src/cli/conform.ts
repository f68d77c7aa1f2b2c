import { addedMax, conform, type Result } from '../conform/run.ts'
import { SetupError } from '../errors.ts'
import { connectionProblem } from './advice.ts'
import { argument, command, switchOption } from './arguments.ts'
import { confirmationProblems, exitCode, type Io, isConfirmed, visible } from './output.ts'
import { apiKeyOption, baseUrlOption } from './pets.ts'

export const conformCommand = command({
  name: 'conform',
  summary: 'Check any server against the interface; exit code 1 if a check fails',
  options: {
    baseUrl: {
      ...argument('<url>', 'the base URL of a server, such as http://127.0.0.1:8080/v1; PETSTORE_URL is not read'),
      ...baseUrlOption,
    },
    key: apiKeyOption,
    readOnly: switchOption('--read-only', 'Send only GET; skip the checks that add animals'),
    json: switchOption('--json', 'Print one JSON document'),
    yes: switchOption('--yes, -y', 'Add animals without asking; needed without a terminal'),
  },
  details: `Without --read-only, it adds up to ${addedMax} animals and removes none.
It says so on stderr and asks first.`,
  examples: [
    'petstore conform http://127.0.0.1:8080/v1 --read-only',
    'petstore conform http://127.0.0.1:8080/v1 --yes --json',
  ],
  check: ({ readOnly, yes }) =>
    confirmationProblems(readOnly || yes).map(problem => `${problem}, or --read-only to add nothing`),
  async run({ baseUrl, key, readOnly, json, yes }, io) {
    const beforeWriting = () => confirmWriting(baseUrl, yes, io)
    const onResult = (result: Result) => (json ? undefined : io.out(resultLines(result)))
    const results = await conform({ baseUrl, key, readOnly }, beforeWriting, onResult).catch((error: Error) => {
      throw connectionProblem(baseUrl, error.cause) ?? error
    })
    const summary = { passed: 0, failed: 0, skipped: 0 }
    for (const { finding } of results) summary[finding.outcome]++
    const { passed, failed, skipped } = summary
    const checks = results.map(({ check, finding }) => ({ name: check.name, where: formatSource(check), ...finding }))
    const report = json
      ? JSON.stringify({ url: baseUrl, readOnly, summary, checks }, null, 2)
      : `\n${baseUrl}: ${passed} passed, ${failed} failed, ${skipped} skipped`
    // Line breaks in a string of JSON are escaped already.
    await io.out(`${report.split('\n').map(visible).join('\n')}\n`)
    return failed === 0 ? exitCode.success : exitCode.failure
  },
})

/** Says what will be added. Asks, unless `yes`, and rejects unless the answer is yes. */
async function confirmWriting(baseUrl: string, yes: boolean, io: Io) {
  await io.err(`This adds up to ${addedMax} animals, named "conform ...", to ${baseUrl} and removes none.\n`)
  if (yes || (await isConfirmed('Continue?', io))) return
  throw new SetupError('Nothing was added: answer y, use --yes, or check with --read-only')
}

const marks = { passed: '✓', failed: '✗', skipped: '-' }

function resultLines({ check, finding }: Result): string {
  const line = `${marks[finding.outcome]} ${check.name}`
  if (finding.outcome === 'passed') return `${line}\n`
  if (finding.outcome === 'skipped') return `${line} (skipped: ${finding.why})\n`
  const [expected, found] = [visible(finding.expected), visible(finding.found)]
  return `${line}\n    expected: ${expected}\n    found:    ${found}\n    rule:     ${formatSource(check)}\n`
}

function formatSource({ section }: Result['check']): string {
  return `docs/interface.md, ${section}`
}
