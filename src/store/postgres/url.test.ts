import { expect, test } from 'bun:test'
import { parsePostgresUrl, postgresUrlProblem } from './url.ts'

/** What is read from a valid address. */
function read(url: string) {
  expect(postgresUrlProblem(url), url).toBeUndefined()
  return parsePostgresUrl(url)
}

test.each([
  ['postgres', 'u:p@', 'db', 'db:5432', 'pets'],
  ['postgresql', '', 'db1.example.com:6543', 'db1.example.com:6543', 'my%20pets'],
  ['postgres', 'u:@', '[2001:db8::7]:6543', '[2001:db8::7]:6543', 'pets'],
  ['postgres', 'a%40b:p%40%2F%23%25%20@', 'DB_1', 'DB_1:5432', 'pets'],
  ['postgres', 'ü:p,ä:c@', 'db', 'db:5432', 'pets'],
  ['postgres', ':hunter2@', 'db:65535', 'db:65535', 'pets'],
])('%s://%s%s is shown as %s, without user and password', (scheme, user, given, host, name) => {
  const expected = { host, location: `postgres://${host}/${name}`, url: `postgres://${user}${host}/${name}` }
  expect(read(`${scheme}://${user}${given}/${name}`)).toMatchObject(expected)
})

test('the driver gets sslmode; the other options are used by us', () => {
  const defaults = { applicationName: 'petstore', connectSecondsMax: 2, url: 'postgres://db:5432/pets' }
  expect(read('postgres://db/pets?')).toMatchObject(defaults)
  expect(read('postgres://db/pets?application_name=till%201&sslmode=require&connect_timeout=5')).toMatchObject({
    applicationName: 'till 1',
    connectSecondsMax: 5,
    url: 'postgres://db:5432/pets?sslmode=require',
  })
  for (const mode of ['disable', 'prefer', 'verify-ca', 'verify-full']) read(`postgres://db/pets?sslmode=${mode}`)
})

const example = /^expected postgres:/
const escapes = / as %40 /
const several = /several hosts: name one, a proxy that finds the primary or the address of the cluster$/
test.each<[RegExp, ...string[]]>([
  [example, '', 'mysql://u:hunter2@db/pets', 'POSTGRES://db/pets', 'postgres:db/pets', 'postgres:/db/pets'],
  [example, ' postgres://db/pets', 'postgres://db/pets\n', 'postgres://u:hun ter2@db/pets'],
  [escapes, 'postgres://u:hun@ter2@db/pets', 'postgres://u:hun/ter2@db/pets', 'postgres://u:hun?ter2=x@db/pets'],
  [escapes, 'postgres://u:hun#ter2@db/pets', 'postgres://u:hunter2%zz@db/pets', 'postgres://u:hunter2%ff@db/pets'],
  [escapes, 'postgres://u:5432/hunter2?hunter=2@db/pets', 'postgres://u:hunter2%00@db/pets'],
  [several, 'postgres://u:hunter2@a,b/pets', 'postgres://a:1,b:2/pets', 'postgres://[::1],b/pets'],
  [/^the host is /, 'postgres:///pets', 'postgres://u:hunter2@/pets', 'postgres://hunter$2/pets'],
  [/^the host is /, 'postgres://[hunter2]/pets', 'postgres://[1:2]/pets', 'postgres://::1/pets'],
  [/^the port is invalid/, 'postgres://db:hunter2/pets', 'postgres://db:0/pets', 'postgres://db:65536/pets'],
  [/^the database is /, 'postgres://db', 'postgres://db/?sslmode=require', 'postgres://db/pets/hunter2'],
  [/^the option \w+ is not supported/, 'postgres://db/pets?password=hunter2', 'postgres://db/pets?constructor=1'],
  [/^an option is not supported/, 'postgres://db/pets?Hunter2', 'postgres://db/pets?hunter2'],
  [/^the option sslmode is given twice/, 'postgres://db/pets?sslmode=require&sslmode=disable'],
  [/^sslmode=allow is not supported: expected disable, prefer,/, 'postgres://db/pets?sslmode=allow'],
  [/^the value of sslmode is not supported/, 'postgres://db/pets?sslmode=%1b[31m'],
  [/^sslmode= is not supported/, 'postgres://db/pets?sslmode=', 'postgres://db/pets?sslmode'],
  [
    /^the value of connect_timeout/,
    'postgres://db/pets?connect_timeout=hunter2',
    'postgres://db/pets?connect_timeout=6',
  ],
  [/^the value of application_name/, 'postgres://db/pets?application_name=', 'postgres://db/pets?application_name=%0A'],
])('"%s" is what is wrong, without a value', (problem, ...urls) => {
  for (const url of urls) {
    expect(postgresUrlProblem(url), url).toMatch(problem)
    expect(postgresUrlProblem(url)).not.toMatch(/hunter/i)
  }
})
