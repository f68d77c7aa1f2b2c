import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startService } from '../http/service.ts'
import { petstore, projectFolder, readProjectFile, run, temporaryFolder } from '../support/process.ts'

/** The first block starts every program. Each other block is a program, followed by its output. */
function readExamples() {
  const [setting, ...rest] = readProjectFile('docs/client.md')
    .split(/^### /m)
    .flatMap(section => {
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

/** A folder for programs that import `petstore-client`: a clone has no built package, so its name leads to the sources. */
function programFolder() {
  const folder = temporaryFolder()
  const compilerOptions = {
    // Not every example uses all that it imports.
    noUnusedLocals: false,
    typeRoots: [join(projectFolder, 'node_modules/@types')],
    paths: { 'petstore-client': [join(projectFolder, 'src/client/index.ts')] },
  }
  const config = { extends: join(projectFolder, 'tsconfig.json'), compilerOptions, include: ['*.ts'] }
  writeFileSync(join(folder.path, 'tsconfig.json'), JSON.stringify(config))
  return folder
}

test.each(examples)('docs/client.md, %s: the example prints what the page shows', async (_title, code, output) => {
  using folder = programFolder()
  await using service = await startStocked()
  writeFileSync(join(folder.path, 'example.ts'), code)
  const ran = await run([process.execPath, '--no-env-file', 'example.ts'], { cwd: folder.path, env: service.env })
  expect(ran).toEqual({ exitCode: 0, stdout: output, stderr: '' })
})

test('the examples of docs/client.md pass the type checker', async () => {
  using folder = programFolder()
  for (const [index, [, code]] of examples.entries()) writeFileSync(join(folder.path, `example-${index}.ts`), code)
  expect(examples.length).toBeGreaterThan(4)
  const tsc = await run([join(projectFolder, 'node_modules/.bin/tsc'), '--project', '.'], { cwd: folder.path })
  expect(tsc).toEqual({ exitCode: 0, stdout: '', stderr: '' })
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
