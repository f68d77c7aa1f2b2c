import { describe, expect, test } from 'bun:test'
import { parsePostgresUrl } from './url.ts'

describe('an address of PostgreSQL', () => {
  test.each<[string, place: string, ...hosts: string[]]>([
    ['postgres://u:p@db/pets', 'postgres://db:5432/pets', 'postgres://u:p@db:5432/pets'],
    ['postgresql://u:p@db/pets', 'postgres://db:5432/pets', 'postgres://u:p@db:5432/pets'],
    [
      'postgres://u:p@db1.example.com:6543/pets',
      'postgres://db1.example.com:6543/pets',
      'postgres://u:p@db1.example.com:6543/pets',
    ],
    ['postgres://u@127.0.0.1/pets', 'postgres://127.0.0.1:5432/pets', 'postgres://u@127.0.0.1:5432/pets'],
    ['postgres://u:@db/pets', 'postgres://db:5432/pets', 'postgres://u:@db:5432/pets'],
    ['postgres://db/pets', 'postgres://db:5432/pets', 'postgres://db:5432/pets'],
    ['postgres://db:1/pets', 'postgres://db:1/pets', 'postgres://db:1/pets'],
    ['postgres://db:65535/pets', 'postgres://db:65535/pets', 'postgres://db:65535/pets'],
    ['postgres://u:p@[::1]/pets', 'postgres://[::1]:5432/pets', 'postgres://u:p@[::1]:5432/pets'],
    [
      'postgres://u:p@[2001:db8::7]:6543/pets',
      'postgres://[2001:db8::7]:6543/pets',
      'postgres://u:p@[2001:db8::7]:6543/pets',
    ],
    ['postgres://u:p@db_1/pets', 'postgres://db_1:5432/pets', 'postgres://u:p@db_1:5432/pets'],
    [
      'postgres://u:p@DB.Example/pets',
      'postgres://DB.Example:5432/pets',
      'postgres://u:p@DB.Example:5432/pets',
    ],
    [
      'postgres://u:p@a,b:6543,[::1],[::1]:7/pets',
      'postgres://a:5432,b:6543,[::1]:5432,[::1]:7/pets',
      'postgres://u:p@a:5432/pets',
      'postgres://u:p@b:6543/pets',
      'postgres://u:p@[::1]:5432/pets',
      'postgres://u:p@[::1]:7/pets',
    ],
    [
      'postgres://a%40b:p%40ss%2Fw%3A%23%25%20@db/my%20pets',
      'postgres://db:5432/my%20pets',
      'postgres://a%40b:p%40ss%2Fw%3A%23%25%20@db:5432/my%20pets',
    ],
    ['postgres://u:a:b:c@db/pets', 'postgres://db:5432/pets', 'postgres://u:a:b:c@db:5432/pets'],
    ['postgres://ü:pä@db/pets', 'postgres://db:5432/pets', 'postgres://ü:pä@db:5432/pets'],
    ['postgres://u:p@db/pets?', 'postgres://db:5432/pets', 'postgres://u:p@db:5432/pets'],
  ])('%s is %s', (url, place, ...hosts) => {
    expect(parsePostgresUrl(url)?.place).toBe(place)
    expect(parsePostgresUrl(url)?.hosts.map(host => host.url)).toEqual(hosts)
  })

  test.each(['disable', 'prefer', 'require', 'verify-ca', 'verify-full'])(
    'sslmode=%s is handed on for every host',
    sslmode => {
      expect(
        parsePostgresUrl(`postgres://u:p@a,b/pets?sslmode=${sslmode}`)?.hosts.map(({ url }) => url),
      ).toEqual([
        `postgres://u:p@a:5432/pets?sslmode=${sslmode}`,
        `postgres://u:p@b:5432/pets?sslmode=${sslmode}`,
      ])
    },
  )

  test.each(['read-write', 'primary'])(
    'target_session_attrs=%s is what is done anyway: it is taken, and changes nothing',
    target => {
      const plain = parsePostgresUrl('postgres://u:p@a,b/pets?sslmode=require')
      expect(plain).toBeDefined()
      for (const options of [
        `sslmode=require&target_session_attrs=${target}`,
        `target_session_attrs=${target}&sslmode=require`,
      ]) {
        expect(parsePostgresUrl(`postgres://u:p@a,b/pets?${options}`)).toEqual(plain)
      }
    },
  )

  test('names every host, with its port, as a person would', () => {
    expect(parsePostgresUrl('postgres://u:p@a,b:6543,[::1]/pets')?.hosts.map(({ name }) => name)).toEqual([
      'a:5432',
      'b:6543',
      '[::1]:5432',
    ])
  })

  test.each([
    'postgres://somebody:hunter2@db/pets',
    'postgres://somebody:hunter2@a,b:1/pets?sslmode=require',
    'postgresql://somebody:hunter2@[::1]/pets',
    'postgres://somebody:hunter2:hunter2@db/pets',
    'postgres://:hunter2@db/pets',
    'postgres://somebody@db/pets',
  ])('%s is shown to people without user and password', url => {
    const { place = '', hosts = [] } = parsePostgresUrl(url) ?? {}
    expect(place).toStartWith('postgres://')
    expect([place, ...hosts.map(({ name }) => name)].join()).not.toMatch(/somebody|hunter2|@/)
  })
})

describe('no address of PostgreSQL', () => {
  test.each([
    ['nothing at all', ''],
    ['another scheme', 'mysql://u:p@db/pets'],
    ['the scheme in capitals', 'POSTGRES://u:p@db/pets'],
    ['the scheme alone', 'postgres://'],
    ['no slashes', 'postgres:db/pets'],
    ['one slash', 'postgres:/db/pets'],
    ['no database', 'postgres://u:p@db'],
    ['no database after the slash', 'postgres://u:p@db/'],
    ['no database before the options', 'postgres://u:p@db/?sslmode=require'],
    ['two databases', 'postgres://u:p@db/pets/more'],
    ['a slash after the database', 'postgres://u:p@db/pets/'],
    ['no host', 'postgres://u:p@/pets'],
    ['no host, only a port', 'postgres://u:p@:5432/pets'],
    ['no host and nobody', 'postgres:///pets'],
    ['an empty host between commas', 'postgres://u:p@a,,b/pets'],
    ['an empty host in front', 'postgres://u:p@,b/pets'],
    ['an empty host at the end', 'postgres://u:p@a,/pets'],
    ['an @ in the password as it is', 'postgres://u:p@ss@db/pets'],
    ['a slash in the password as it is', 'postgres://u:p/ss@db/pets'],
    ['a user at every host', 'postgres://u:p@a,u:p@b/pets'],
    ['a port that is a word', 'postgres://u:p@db:abc/pets'],
    ['a port that is empty', 'postgres://u:p@db:/pets'],
    ['port 0', 'postgres://u:p@db:0/pets'],
    ['port 65536', 'postgres://u:p@db:65536/pets'],
    ['port 99999 of the second host', 'postgres://u:p@a,b:99999/pets'],
    ['a port of six digits', 'postgres://u:p@db:543210/pets'],
    ['a negative port', 'postgres://u:p@db:-1/pets'],
    ['IPv6 without brackets', 'postgres://u:p@::1/pets'],
    ['IPv6 with a bracket open', 'postgres://u:p@[::1/pets'],
    ['IPv6 that is none', 'postgres://u:p@[1:2]/pets'],
    ['a host with odd letters', 'postgres://u:p@d$b/pets'],
    ['a socket for a host', 'postgres://u:p@%2Fvar%2Frun/pets'],
    ['a # in the password as it is', 'postgres://u:p#w@db/pets'],
    ['a # after the database', 'postgres://u:p@db/pets#part'],
    ['a # in the options', 'postgres://u:p@db/pets?sslmode=require#part'],
    ['a space in front', ' postgres://u:p@db/pets'],
    ['a space at the end', 'postgres://u:p@db/pets '],
    ['a line end at the end', 'postgres://u:p@db/pets\n'],
    ['a space in the host', 'postgres://u:p@d b/pets'],
    ['a space in the password', 'postgres://u:p w@db/pets'],
    ['a space in the database', 'postgres://u:p@db/my pets'],
    ['a space after the comma', 'postgres://u:p@a, b/pets'],
    ['a broken escape', 'postgres://u:p%zz@db/pets'],
    ['an escape that is no UTF-8', 'postgres://u:p%ff@db/pets'],
    ['an unknown option', 'postgres://u:p@db/pets?connect_timeout=3'],
    ['an unknown option beside a known one', 'postgres://u:p@db/pets?sslmode=require&options=-c'],
    ['an unknown sslmode', 'postgres://u:p@db/pets?sslmode=maybe'],
    ['sslmode=allow, which the driver does not have', 'postgres://u:p@db/pets?sslmode=allow'],
    ['an empty sslmode', 'postgres://u:p@db/pets?sslmode='],
    ['an sslmode in capitals', 'postgres://u:p@db/pets?sslmode=REQUIRE'],
    ['a search for standbys', 'postgres://u:p@a,b/pets?target_session_attrs=standby'],
    ['an empty target_session_attrs', 'postgres://u:p@db/pets?target_session_attrs='],
  ])('is %s: %j', (_, url) => {
    expect(parsePostgresUrl(url)).toBeUndefined()
  })
})
