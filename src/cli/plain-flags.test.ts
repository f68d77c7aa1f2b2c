import { expect, test } from 'bun:test'
import { plainFlags } from './plain-flags.ts'

test.each([
  ['nothing', [], {}],
  ['one flag', ['--port', '0'], { port: '0' }],
  [
    'flags in any order',
    ['--database-url', 'sqlite:a.db', '--port', '1'],
    { databaseUrl: 'sqlite:a.db', port: '1' },
  ],
  ['a flag given twice: the last one', ['--port', '1', '--port', '2'], { port: '2' }],
  ['a switch among flags', ['--reuse-port', '--port', '1'], { reusePort: 'true', port: '1' }],
  ['an empty value', ['--host', ''], { host: '' }],
  ['a value with a space and an =', ['--api-key', 'a b=c'], { apiKey: 'a b=c' }],
])('reads %s', (_, args, flags) => {
  expect(plainFlags(args)).toEqual(flags)
})

test.each([
  ['a flag that nobody knows', ['--prot', '1']],
  ['a word that is no flag', ['now']],
  ['a word behind the flags', ['--port', '1', 'now']],
  ['a flag without its value', ['--port']],
  ['a flag in the place of a value', ['--port', '--host']],
  ['a value that may be a flag', ['--port', '-1']],
  ['a flag and its value in one word', ['--port=1']],
  ['the help', ['--help']],
  ['the help among flags', ['--port', '1', '-h']],
  ['the end of flags', ['--', '--port', '1']],
  ['an empty word', ['']],
  ['a name that every object has', ['--constructor', '1']],
])('leaves %s to commander', (_, args) => {
  expect(plainFlags(args)).toBeUndefined()
})
