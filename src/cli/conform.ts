import { addedMax, conform, expectReachable, type Result } from '../conform/run.ts'
import { SetupError } from '../errors.ts'
import { connectionProblem } from './advice.ts'
import { argument, command, switchOption } from './command.ts'
import { exitCode, visible } from './output.ts'
import { apiKeyOption, baseUrlOption } from './pets.ts'
import { confirmationProblems, isConfirmed } from './terminal.ts'

export const conformCommand = command({
  name: 'conform',
  summary: 'Check any server against the interface; exit code 1 if a check fails',
  options: {
    baseUrl: {
      ...argument('url', 'the base URL of a server, such as http://127.0.0.1:8080/v1; PETSTORE_URL is not read'),
      ...baseUrlOption,
    },
    key: apiKeyOption,
    readOnly: switchOption('read-only', 'Send only GET; skip the checks that add animals'),
    json: switchOption('json', 'Print one JSON document'),
    yes: switchOption('yes', 'Add animals without asking; needed without a terminal', 'y'),
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
    const target = { baseUrl, key, readOnly }
    await expectReachable(target).catch((error: Error) => {
      throw connectionProblem(baseUrl, error.cause, io.program) ?? error
    })
    if (!readOnly) {
      await io.err(`This adds up to ${addedMax} animals, named "conform ...", to ${baseUrl} and removes none.\n`)
      if (!yes && !(await isConfirmed('Continue?', io)))
        throw new SetupError('Nothing was added: answer y, use --yes, or check with --read-only')
    }
    const summary = { passed: 0, failed: 0, skipped: 0 }
    const checks: Result[] = []
    for await (const result of conform(target)) {
      summary[result.outcome]++
      checks.push(result)
      if (!json) await io.out(resultLines(result))
    }
    const { passed, failed, skipped } = summary
    const report = json
      ? JSON.stringify({ url: baseUrl, readOnly, summary, checks }, null, 2)
      : `\n${baseUrl}: ${passed} passed, ${failed} failed, ${skipped} skipped`
    // Line breaks in a string of JSON are escaped already.
    await io.out(`${report.split('\n').map(visible).join('\n')}\n`)
    return failed === 0 && passed > 0 ? exitCode.success : exitCode.failure
  },
})

const marks = { passed: '✓', failed: '✗', skipped: '-' }

function resultLines(result: Result): string {
  const line = `${marks[result.outcome]} ${result.name}`
  if (result.outcome === 'passed') return `${line}\n`
  if (result.outcome === 'skipped') return `${line} (skipped: ${result.why})\n`
  const [expected, found] = [visible(result.expected), visible(result.found)]
  return `${line}\n    expected: ${expected}\n    found:    ${found}\n    rule:     ${result.where}\n`
}
