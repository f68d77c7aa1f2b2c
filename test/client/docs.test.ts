import { expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { petstore, readProjectFile } from '../support/process.ts'
import { startService } from '../support/service.ts'
import { programFolder } from './program-folder.ts'

const page = readProjectFile('docs/client.md')

/** The first block starts every program. Each other block is a program, followed by its output. */
function readExamples() {
  const [setting, ...rest] = page.split(/^### /m).flatMap(section => {
    const [title = ''] = section.split('\n', 1)
    const blocks = section.matchAll(/^```ts\n([\s\S]*?)^```$(?:\s*^```text\n([\s\S]*?)^```$)?/gm)
    return [...blocks].map(([, code = '', output = '']) => ({ title, code, output }))
  })
  return rest.map(({ title, code, output }) => [title, `${setting?.code}\n${code}`, output] as const)
}

const examples = readExamples()

/** A service with one animal, and the variables that lead to it. */
async function startStocked() {
  const service = await startService()
  await service.stores.pets.create({ name: 'Bo', categoryId: 1n })
  return Object.assign(service, { env: { PETSTORE_URL: `${service.origin}/v1`, PETSTORE_API_KEY: service.key } })
}

test.each(examples)('docs/client.md, %s: the example prints what the page shows', async (_title, code, output) => {
  using folder = programFolder()
  await using service = await startStocked()
  folder.write('example.ts', code)
  expect(await folder.run('example.ts', service.env)).toEqual({ exitCode: 0, stdout: output, stderr: '' })
})

test('the examples of docs/client.md pass the type checker', async () => {
  using folder = programFolder()
  for (const [index, [, code]] of examples.entries()) folder.write(`example-${index}.ts`, code)
  expect(examples.length).toBeGreaterThan(4)
  await folder.expectTypesToPass()
})

test.each(['docs/client.md', 'docs/conformance.md'])('the commands of %s work', async file => {
  await using service = await startStocked()
  const text = readProjectFile(file).replaceAll('http://127.0.0.1:8080', service.origin)
  const commands = [...text.matchAll(/^bin\/petstore ([^#\n]*)/gm)].map(([, args = '']) => args.trim())
  expect(commands.length).toBeGreaterThan(2)
  for (const command of commands) {
    const { exitCode } = await petstore(command.split(/\s+/), { cwd: tmpdir(), env: service.env })
    expect({ command, exitCode }).toEqual({ command, exitCode: 0 })
  }
})
