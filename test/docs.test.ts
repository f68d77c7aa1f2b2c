import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { generatedClients } from './generators/clients.ts'
import { projectFolder } from './support/process.ts'
import timings from './timings.json' with { type: 'json' }

const documents = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...readdirSync(join(projectFolder, 'docs')).flatMap(name => (name.endsWith('.md') ? [`docs/${name}`] : [])),
]

const textOf = (document: string) => readFileSync(join(projectFolder, document), 'utf8')

/** The anchors of a document's headings, as GitHub makes them. */
function anchorsIn(document: string): string[] {
  return [...textOf(document).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

test.each(documents)('every link of %s leads to a file and a heading that exist', document => {
  for (const [link, path = '', anchor] of textOf(document).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)) {
    const target = path === '' ? document : join(dirname(document), path)
    expect([link, existsSync(join(projectFolder, target))]).toEqual([link, true])
    if (anchor !== undefined) expect([link, anchorsIn(target)]).toEqual([link, expect.arrayContaining([anchor])])
  }
})

test.each(documents)('every test that %s names exists', document => {
  for (const [, path = ''] of textOf(document).matchAll(/`((?:src|test)\/[\w/.-]+)`/g)) {
    const file = join(projectFolder, path)
    expect([path, existsSync(file) || existsSync(`${file}.test.ts`)]).toEqual([path, true])
  }
})

test('every file that test/timings.json names exists', () => {
  expect(Object.keys(timings.files).filter(file => !existsSync(join(projectFolder, file)))).toEqual([])
})

test('docs/interface.md links to every generated client', () => {
  const text = textOf('docs/interface.md')
  for (const { name } of generatedClients) expect(text).toContain(`](../test/generators/${name})`)
})
