import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { generatedClients } from './generators/clients.ts'
import { projectFolder } from './support/process.ts'

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

test('docs/interface.md has the table of generated clients', () => {
  const rows = generatedClients.map(({ name, language, generator, version, generate, tested, know }) => {
    const linked = `[${generator}](../test/generators/${name})`
    return `| ${[language, linked, version, `\`${generate}\``, tested, know].join(' | ')} |`
  })
  const head =
    '| Language | Generator | Version | Command | Seen to work with | What to know |\n|---|---|---|---|---|---|'
  const file = join(projectFolder, 'docs/interface.md')
  const text = readFileSync(file, 'utf8')
  const table = `${head}\n${rows.toSorted().join('\n')}\n`
  const expected = text.replace(/(?<=<!-- generators -->\n).*(?=<!-- \/generators -->)/s, () => table)
  expect(text).toContain('<!-- generators -->')
  if (process.env['UPDATE_DOCS']) writeFileSync(file, expected)
  else if (text !== expected) {
    throw new Error('The table is out of date. Update it with: UPDATE_DOCS=1 npx bun test test/docs.test.ts')
  }
})
