import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { testMsMax } from '../support/process.ts'
import { animalLines, workplace } from '../support/workplace.ts'

setDefaultTimeout(testMsMax)

const rex = '{"id":1,"name":"Rex","categoryId":7}'

test.each<[string, string | Uint8Array, string[], string]>([
  ['no JSON', `${rex}\n{"id":2,`, [], 'line 2: Cannot read it as JSON: '],
  ['no object', `${rex}\n[1]\n`, [], 'line 2: Cannot read it […]: expected an object'],
  ['a blank line between', `${rex}\n\n${rex}\n`, [], 'line 2: it is blank'],
  [
    'bytes that are not UTF-8',
    Buffer.concat([Buffer.from(`${rex}\n`), Buffer.from([0xff, 0x0a])]),
    [],
    'line 2: it has bytes',
  ],
  ['more than 64 KiB', `${rex}\n${rex}${' '.repeat(65_536)}\n`, [], 'line 2: it has more than 65536 bytes'],
  [
    'several problems',
    `${rex}\n{"id":0,"name":""}\n`,
    [],
    'line 2: Cannot read id 0: expected a whole number',
  ],
  [
    'an unknown property',
    `${rex}\n{"name":"Rex","categoryId":7,"age":3}`,
    [],
    'line 2: Unknown property "age"',
  ],
  [
    'a category beyond 64 bits',
    '{"name":"Rex","categoryId":9223372036854775808}',
    [],
    'line 1: Cannot read categoryId 9',
  ],
  ['an id that is missing', '{"name":"Rex","categoryId":7}', ['--keep-ids'], 'line 1: id is missing'],
  ['an id twice', `${rex}\n${rex}`, ['--keep-ids'], 'line 2: Cannot keep id 1 after id 1'],
  [
    'the last id of all',
    rex.replace('1', `${2n ** 63n - 1n}`),
    ['--keep-ids'],
    `line 1: Cannot read id ${2n ** 63n - 1n}`,
  ],
  ['a bad line far down', `${animalLines(11_000, 1n)}{}\n`, ['--keep-ids'], 'line 11001: id is missing'],
  [
    'what would steer a terminal',
    `{"name":"Rex","categoryId":7,"\u009b2J":1}`,
    [],
    'Unknown property "\\u009b2J"',
  ],
])('a file with %s is refused whole', async (_, lines, args, message) => {
  using place = workplace(lines)
  const { exitCode, stdout, stderr } = await place.petstore('import', 'animals.ndjson', ...args)
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  const [created, reading, said, ...rest] = stderr.split('\n')
  expect(created).toStartWith('Created a new store at ')
  expect({ reading, rest }).toEqual({ reading: 'Reading animals.ndjson', rest: [''] })
  expect(said).toStartWith('petstore: Cannot import animals.ndjson: line ')
  expect(said).toContain(message)
  expect(await place.exported()).toBe('')
})

test.each<[string, string, RegExp]>([
  ['import nowhere.ndjson', 'nothing', /Cannot import nowhere.ndjson: there is no such file/],
  ['import .', 'nothing', /Cannot import .: it is neither a file nor a pipe/],
  ['export', 'nothing', /There is no store at pets.db/],
  ['export animals.ndjson', 'a store', /Cannot export to animals.ndjson: there is a file of this name/],
  ['export nowhere/out.ndjson', 'a store', /Cannot export to nowhere.out.ndjson: its folder does not exist/],
])('%s, with %s there, is refused and leaves nothing behind', async (line, there, message) => {
  using place = workplace('mine')
  if (there === 'a store') await place.shell(`echo '${rex}' | petstore import -`)
  const before = readdirSync(place.path)
  const { exitCode, stdout, stderr } = await place.petstore(...line.split(' '))
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toMatch(message)
  expect(stderr).not.toMatch(/\n\s+at /)
  expect(readdirSync(place.path)).toEqual(before)
  expect(readFileSync(place.file('animals.ndjson'), 'utf8')).toBe('mine')
})
