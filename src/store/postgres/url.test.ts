import { expect, test } from 'bun:test'
import { parsePostgresUrl } from './url.ts'

/** `hosts` as in the message, with their ports; `user` and `options` as the driver gets them. */
function expectAddress(url: string, { user = 'u:p@', hosts = 'db:5432', database = 'pets', options = '' }): void {
  const address = parsePostgresUrl(url)
  const names = hosts.split(',')
  expect(address?.location, url).toBe(`postgres://${hosts}/${database}`)
  expect(address?.hosts.map(({ name }) => name)).toEqual(names)
  expect(address?.hosts.map(host => host.url)).toEqual(
    names.map(name => `postgres://${user}${name}/${database}${options}`),
  )
}

test('both schemes and any database are accepted', () => {
  for (const scheme of ['postgres', 'postgresql']) expectAddress(`${scheme}://u:p@db/pets`, {})
  expectAddress('postgres://u:p@db/my%20pets', { database: 'my%20pets' })
})

test.each([
  ['db', 'db:5432'],
  ['db1.example.com:6543', 'db1.example.com:6543'],
  ['127.0.0.1', '127.0.0.1:5432'],
  ['db:1,db:65535', 'db:1,db:65535'],
  ['[2001:db8::7]:6543', '[2001:db8::7]:6543'],
  ['db_1,DB.Example', 'db_1:5432,DB.Example:5432'],
  ['a,b:6543,[::1],[::1]:7', 'a:5432,b:6543,[::1]:5432,[::1]:7'],
])('the host %s is shown as %s, without user and password', (given, hosts) => {
  expectAddress(`postgres://u:p@${given}/pets`, { hosts })
})

test.each(['', 'u@', 'u:@', 'u:p@', 'a%40b:p%40%2F%23%25%20@', 'u:a:b:c@', ':hunter2@', 'ü:pä@'])('user "%s"', user => {
  expectAddress(`postgres://${user}db/pets`, { user })
})

test.each([
  ...['?', '?target_session_attrs=primary', '?target_session_attrs=read-write'].map(query => [query, '']),
  ...['disable', 'prefer', 'require', 'verify-ca', 'verify-full'].map(mode => [
    `?sslmode=${mode}&target_session_attrs=primary`,
    `?sslmode=${mode}`,
  ]),
] as [string, string][])('with the options %s the driver gets "%s"', (query, options) => {
  expectAddress(`postgres://u:p@a,b/pets${query}`, { hosts: 'a:5432,b:5432', options })
})

test.each<[string, ...string[]]>([
  ['an incomplete address', 'postgres://', 'postgres:db/pets', 'postgres:/db/pets', 'postgres:///pets'],
  ['another scheme', '', 'mysql://u:p@db/pets', 'POSTGRES://u:p@db/pets'],
  ['no database', 'postgres://u:p@db', 'postgres://u:p@db/', 'postgres://u:p@db/?sslmode=require'],
  ['more than a database', 'postgres://u:p@db/pets/more', 'postgres://u:p@db/pets/', 'postgres://u:p@db/pets#part'],
  ['no host', 'postgres://u:p@/pets', 'postgres://u:p@:5432/pets'],
  ['an empty host', 'postgres://u:p@a,,b/pets', 'postgres://u:p@,b/pets', 'postgres://u:p@a,/pets'],
  ['unescaped password', 'postgres://u:p@ss@db/pets', 'postgres://u:p/ss@db/pets', 'postgres://u:p#w@db/pets'],
  ['a user at every host', 'postgres://u:p@a,u:p@b/pets'],
  ['a port that is no number', 'postgres://u:p@db:abc/pets', 'postgres://u:p@db:/pets', 'postgres://u:p@db:-1/pets'],
  ['a port out of range', 'postgres://u:p@db:0/pets', 'postgres://u:p@db:65536/pets', 'postgres://u:p@db:543210/pets'],
  ['a second port out of range', 'postgres://u:p@a,b:99999/pets'],
  ['invalid IPv6', 'postgres://u:p@::1/pets', 'postgres://u:p@[::1/pets', 'postgres://u:p@[1:2]/pets'],
  ['an invalid host', 'postgres://u:p@d$b/pets', 'postgres://u:p@%2Fvar%2Frun/pets'],
  ['white space outside', ' postgres://u:p@db/pets', 'postgres://u:p@db/pets ', 'postgres://u:p@db/pets\n'],
  ['white space in the hosts', 'postgres://u:p@d b/pets', 'postgres://u:p@a, b/pets'],
  ['white space elsewhere', 'postgres://u:p w@db/pets', 'postgres://u:p@db/my pets'],
  ['a broken escape', 'postgres://u:p%zz@db/pets', 'postgres://u:p%ff@db/pets'],
])('%s is refused', (_, ...urls) => {
  for (const url of urls) expect(parsePostgresUrl(url), url).toBeUndefined()
})

test.each([
  ...['connect_timeout=3', 'sslmode=require&options=-c', 'sslmode=require#part', 'target_session_attrs=standby'],
  // The driver does not support sslmode=allow.
  ...['sslmode=maybe', 'sslmode=allow', 'sslmode=', 'sslmode=REQUIRE', 'target_session_attrs='],
])('the option %s is refused', options => {
  expect(parsePostgresUrl(`postgres://u:p@db/pets?${options}`)).toBeUndefined()
})
