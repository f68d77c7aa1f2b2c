import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { requestIdCharsMax } from '../src/http/exchange.ts'
import { bodyBytesMax, bodySecondsMax, errorCodes, operations, sharedErrors } from '../src/http/operations.ts'
import { idleSeconds } from '../src/http/server.ts'
import { nestingMax } from '../src/json.ts'
import { cursorSchema, pageLimit } from '../src/page.ts'
import { petName } from '../src/pet.ts'
import { idempotencyKeyMs } from '../src/store-contract.ts'
import { projectFolder, readProjectFile } from './support/process.ts'

const documents = [...new Bun.Glob('{*,docs/*,src/client/*}.md').scanSync({ cwd: projectFolder })]

/** The anchors of a text's headings, as GitHub makes them. */
function anchorsOf(text: string): string[] {
  const headings = text.match(/(?<=^#+ ).*$/gm) ?? []
  return headings.map(heading =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

test.each(documents)('every link of %s leads to a file and a heading that exist', document => {
  for (const [link, path = '', anchor] of readProjectFile(document).matchAll(
    /\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g,
  )) {
    const target = path === '' ? document : join(dirname(document), path)
    expect([link, existsSync(join(projectFolder, target))]).toEqual([link, true])
    if (anchor !== undefined)
      expect([link, anchorsOf(readProjectFile(target))]).toEqual([link, expect.arrayContaining([anchor])])
  }
})

test('docs/troubleshooting.md has every alert of deploy/alerts.yaml', () => {
  const namesIn = (file: string, pattern: RegExp) =>
    Array.from(readProjectFile(file).matchAll(pattern), ([, name]) => name)
  const rows = namesIn('docs/troubleshooting.md', /^\| `(Petstore\w+)` \|/gm)
  expect(rows).toEqual(namesIn('deploy/alerts.yaml', /alert: (\w+)/g))
})

const text = readProjectFile('docs/interface.md').replace(/\s+/g, ' ')
const { minimum, maximum, default: byDefault } = pageLimit.schema

test.each([
  `| ${petName.expected.replace('characters', 'Unicode code points')}, not all white space`,
  `| \`limit\` | ${minimum} to ${maximum}, default ${byDefault} |`,
  `has at most ${cursorSchema['maxLength']} characters`,
  `Keys are remembered for ${idempotencyKeyMs / 3_600_000} hours`,
  `if it is 1 to ${requestIdCharsMax} characters of`,
  `| Body | ${bodyBytesMax.toLocaleString('en')} bytes, complete within ${bodySecondsMax} seconds, nested at most ${nestingMax} levels |`,
  `| Idle connection | closed after about ${idleSeconds} seconds |`,
])('docs/interface.md has %s', sentence => {
  expect(text).toContain(sentence)
})

test('docs/interface.md has the error codes and their statuses', () => {
  const rows = Array.from(text.matchAll(/\| `(\w+)` \| (\d{3}) \|/g), ([, code, status]) => [code, Number(status)])
  const expected = Object.entries(errorCodes).map(([code, { status }]) => [code, status])
  expect(rows.sort()).toEqual(expected.sort())
})

test.each(Object.entries(operations))(
  'docs/interface.md has the method, the path and the statuses of %s',
  (id, operation) => {
    const [, section = ''] = text.split(`### ${id}: \`${operation.method} ${operation.path}\``)
    const [own = ''] = section.split(/ #{2,4} /)
    const listed = [...own.matchAll(/\| (\d{3}(?:, \d{3})*) \|/g)].flatMap(([, statuses = '']) => statuses.split(', '))
    const [, ofAll = ''] = /Every operation can also respond with ([^.]*)\./.exec(text) ?? []
    const codes = [...operation.errors, ...Object.values(sharedErrors).flat()]
    const expected = [operation, ...codes.map(code => errorCodes[code])].map(({ status }) => status)
    expect(new Set([...listed, ...(ofAll.match(/\d+/g) ?? [])].map(Number))).toEqual(new Set(expected))
  },
)
