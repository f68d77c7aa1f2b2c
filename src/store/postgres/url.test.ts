import { describe, expect, test } from 'bun:test'
import { parsePostgresUrl } from './url.ts'

describe('a valid URL', () => {
  test.each<[string, location: string, ...hosts: string[]]>([
    ['postgres://u:p@db/pets', 'db:5432/pets', 'u:p@db:5432/pets'],
    ['postgresql://u:p@db/pets', 'db:5432/pets', 'u:p@db:5432/pets'],
    ['postgres://u:p@db1.example.com:6543/pets', 'db1.example.com:6543/pets', 'u:p@db1.example.com:6543/pets'],
    ['postgres://u@127.0.0.1/pets', '127.0.0.1:5432/pets', 'u@127.0.0.1:5432/pets'],
    ['postgres://u:@db/pets', 'db:5432/pets', 'u:@db:5432/pets'],
    ['postgres://db/pets', 'db:5432/pets', 'db:5432/pets'],
    ['postgres://db:1/pets', 'db:1/pets', 'db:1/pets'],
    ['postgres://db:65535/pets', 'db:65535/pets', 'db:65535/pets'],
    ['postgres://u:p@[::1]/pets', '[::1]:5432/pets', 'u:p@[::1]:5432/pets'],
    ['postgres://u:p@[2001:db8::7]:6543/pets', '[2001:db8::7]:6543/pets', 'u:p@[2001:db8::7]:6543/pets'],
    ['postgres://u:p@db_1/pets', 'db_1:5432/pets', 'u:p@db_1:5432/pets'],
    ['postgres://u:p@DB.Example/pets', 'DB.Example:5432/pets', 'u:p@DB.Example:5432/pets'],
    [
      'postgres://u:p@a,b:6543,[::1],[::1]:7/pets',
      'a:5432,b:6543,[::1]:5432,[::1]:7/pets',
      'u:p@a:5432/pets',
      'u:p@b:6543/pets',
      'u:p@[::1]:5432/pets',
      'u:p@[::1]:7/pets',
    ],
    ['postgres://a%40b:p%40%2F%23%25%20@db/my%20pets', 'db:5432/my%20pets', 'a%40b:p%40%2F%23%25%20@db:5432/my%20pets'],
    ['postgres://u:a:b:c@db/pets', 'db:5432/pets', 'u:a:b:c@db:5432/pets'],
    ['postgres://:hunter2@db/pets', 'db:5432/pets', ':hunter2@db:5432/pets'],
    ['postgres://ü:pä@db/pets', 'db:5432/pets', 'ü:pä@db:5432/pets'],
    ['postgres://u:p@db/pets?', 'db:5432/pets', 'u:p@db:5432/pets'],
    ['postgres://u:p@db/pets?target_session_attrs=primary', 'db:5432/pets', 'u:p@db:5432/pets'],
    ['postgres://u:p@db/pets?target_session_attrs=read-write', 'db:5432/pets', 'u:p@db:5432/pets'],
    ...['disable', 'prefer', 'require', 'verify-ca', 'verify-full'].map((mode): [string, string, string, string] => [
      `postgres://u:p@a,b/pets?sslmode=${mode}&target_session_attrs=primary`,
      'a:5432,b:5432/pets',
      `u:p@a:5432/pets?sslmode=${mode}`,
      `u:p@b:5432/pets?sslmode=${mode}`,
    ]),
  ])('%s is shown as %s, without user and password', (url, location, ...hosts) => {
    const address = parsePostgresUrl(url)
    expect(address?.location).toBe(`postgres://${location}`)
    expect(address?.hosts.map(host => host.url)).toEqual(hosts.map(host => `postgres://${host}`))
    expect(address?.hosts.map(({ name }) => name).join()).toBe(location.replace(/\/.*/, ''))
  })
})

describe('an invalid URL', () => {
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
    ['a port without a host', 'postgres://u:p@:5432/pets'],
    ['neither host nor user', 'postgres:///pets'],
    ['an empty host between commas', 'postgres://u:p@a,,b/pets'],
    ['an empty first host', 'postgres://u:p@,b/pets'],
    ['an empty last host', 'postgres://u:p@a,/pets'],
    ['an unescaped @ in the password', 'postgres://u:p@ss@db/pets'],
    ['an unescaped slash in the password', 'postgres://u:p/ss@db/pets'],
    ['an unescaped # in the password', 'postgres://u:p#w@db/pets'],
    ['a user at every host', 'postgres://u:p@a,u:p@b/pets'],
    ['a port that is a word', 'postgres://u:p@db:abc/pets'],
    ['an empty port', 'postgres://u:p@db:/pets'],
    ['port 0', 'postgres://u:p@db:0/pets'],
    ['port 65536', 'postgres://u:p@db:65536/pets'],
    ['port 99999 of the second host', 'postgres://u:p@a,b:99999/pets'],
    ['a port of six digits', 'postgres://u:p@db:543210/pets'],
    ['a negative port', 'postgres://u:p@db:-1/pets'],
    ['IPv6 without brackets', 'postgres://u:p@::1/pets'],
    ['IPv6 without a closing bracket', 'postgres://u:p@[::1/pets'],
    ['invalid IPv6', 'postgres://u:p@[1:2]/pets'],
    ['an invalid character in the host', 'postgres://u:p@d$b/pets'],
    ['a socket as the host', 'postgres://u:p@%2Fvar%2Frun/pets'],
    ['a # after the database', 'postgres://u:p@db/pets#part'],
    ['a # in the options', 'postgres://u:p@db/pets?sslmode=require#part'],
    ['a leading space', ' postgres://u:p@db/pets'],
    ['a trailing space', 'postgres://u:p@db/pets '],
    ['a trailing line end', 'postgres://u:p@db/pets\n'],
    ['a space in the host', 'postgres://u:p@d b/pets'],
    ['a space in the password', 'postgres://u:p w@db/pets'],
    ['a space in the database', 'postgres://u:p@db/my pets'],
    ['a space after the comma', 'postgres://u:p@a, b/pets'],
    ['a broken escape', 'postgres://u:p%zz@db/pets'],
    ['an escape that is not UTF-8', 'postgres://u:p%ff@db/pets'],
    ['an unknown option', 'postgres://u:p@db/pets?connect_timeout=3'],
    ['an unknown option beside a known one', 'postgres://u:p@db/pets?sslmode=require&options=-c'],
    ['an unknown sslmode', 'postgres://u:p@db/pets?sslmode=maybe'],
    ['sslmode=allow, which the driver does not support', 'postgres://u:p@db/pets?sslmode=allow'],
    ['an empty sslmode', 'postgres://u:p@db/pets?sslmode='],
    ['an sslmode in capitals', 'postgres://u:p@db/pets?sslmode=REQUIRE'],
    ['a search for standbys', 'postgres://u:p@a,b/pets?target_session_attrs=standby'],
    ['an empty target_session_attrs', 'postgres://u:p@db/pets?target_session_attrs='],
  ])('%s: %j', (_, url) => {
    expect(parsePostgresUrl(url)).toBeUndefined()
  })
})
