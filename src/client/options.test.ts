import { expect, mock, test } from 'bun:test'
import { PetstoreClient } from './index.ts'
import { readHeaders } from './options.ts'

const apiKey = 'key-that-must-stay-secret'
const baseUrl = 'https://pets.example.com/v1'

function newClient(options: object): PetstoreClient {
  return Reflect.construct(PetstoreClient, [{ apiKey, ...options }])
}

test.each([
  ['http://127.0.0.1:8080/v1', 'http://127.0.0.1:8080/v1'],
  ['http://127.0.0.1:8080/v1//', 'http://127.0.0.1:8080/v1'],
  ['HTTPS://Pets.Example.com', 'https://pets.example.com/v1'],
  ['https://pets.example.com/shop/', 'https://pets.example.com/shop/v1'],
  [new URL('https://pets.example.com/shop/v1'), 'https://pets.example.com/shop/v1'],
])('the base address %s is read as %s', (given, read) => {
  expect(newClient({ baseUrl: given }).baseUrl).toBe(read)
})

const notHttp = [
  ...['', '/v1', '8080', 'pets', './pets.db', 'ftp://a.example', 'git+https://a', 'postgres://a:1234/secret', 'x y:80'],
  ...['localhost:8080?secret', 'localhost:8080#secret', 'me:secret@localhost:8080', null],
]
const notBare = ['https://u@a', 'https://:secret@a', 'https://a/v1?q', 'https://a/v1#f']
const notKeys = ['', undefined, 'with space', 'secret\nx', 'secret\u00e4', null, 7]

test.each<[string, ...object[]]>([
  ['baseUrl is not an http or https address: expected', ...notHttp.map(address => ({ baseUrl: address }))],
  ['baseUrl has a user, password, query or fragment: remove it', ...notBare.map(address => ({ baseUrl: address }))],
  ['headers is invalid: expected', { baseUrl, headers: null }],
  ['apiKey is empty or invalid: expected', ...notKeys.map(key => ({ baseUrl, apiKey: key }))],
  ['Unknown property baseURL: did you mean baseUrl?', { baseURL: baseUrl }],
  ['timeoutMs is 0: expected an integer from 1 to 2147483647', { baseUrl, timeoutMs: 0 }],
  ['timeoutMs is 2147483648: expected', { baseUrl, timeoutMs: 2 ** 31 }],
  ['retries is 2.5: expected 0 or more', { baseUrl, retries: 2.5 }],
])('a TypeError for invalid options shows no secret: %s', (message, ...invalid) => {
  for (const options of invalid) {
    const create = () => newClient(options)
    expect(create).toThrow(TypeError)
    expect(create).toThrow(message)
    expect(create).not.toThrow('secret')
  }
})

test.each([
  ['localhost:8080', 'http://localhost:8080'],
  ['localhost', 'http://localhost'],
  ['//127.0.0.1:8080/v1/', 'http://127.0.0.1:8080'],
  ['pets.example.com/v1', 'http://pets.example.com'],
  ['HTTPS//pets.example.com', 'https://pets.example.com'],
  ['host:8080', 'http://host:8080'],
  ['htps://pets.example.com:8443', 'http://pets.example.com:8443'],
])('the base address %s gets the suggestion %s', (address, suggested) => {
  const error = new TypeError(`baseUrl is not an http or https address: did you mean ${suggested}?`)
  expect(() => newClient({ baseUrl: address })).toThrow(error)
})

test.each([
  ...['authorization', 'Accept', 'content-type', 'Idempotency-Key'].map(name => ({ [name]: 'secret' })),
  new Headers({ Authorization: 'secret' }),
  ...['secret\r\nx: y', 'secret\u0000', 'secret 犬'].map(value => ({ 'x-a': value })),
  ...['', 'a b', 'a:', 'ä', 'a\n'].map(name => ({ [name]: 'secret' })),
  ...['x-a: secret', 7, null],
])('%j cannot be headers of a request, and the TypeError shows no secret', headers => {
  const read = () => readHeaders(headers as never)
  expect(read).toThrow(TypeError)
  expect(read).toThrow(/^headers(\[".*"\])? is .*: \w/)
  expect(read).not.toThrow('secret')
})

const known = 'signal, timeoutMs, retries, headers'
const rex = { name: 'Rex', categoryId: 7 }

test.each<[string, (client: PetstoreClient) => unknown]>([
  ['timeout: did you mean timeoutMs?', ({ pets }) => pets.get(1, { timeout: 5 } as object)],
  ['stauts: did you mean status?', ({ pets }) => pets.list({ stauts: 'sold' } as object)],
  ['stauts: did you mean status?', ({ pets }) => pets.create({ ...rex, stauts: 'sold' } as typeof rex)],
  ['stauts: did you mean status?', ({ pets }) => pets.update(1, { stauts: 'sold' } as object)],
  ['ifstatus: did you mean ifStatus?', ({ pets }) => pets.update(1, {}, { ifstatus: 'sold' } as object)],
  [`status: expected ${known}, ifStatus`, ({ pets }) => pets.remove(1, { status: 'sold' } as object)],
  ['idempotencykey: did you mean idempotencyKey?', ({ pets }) => pets.create(rex, { idempotencykey: 'a' } as object)],
  ['url: expected', client => client.request({ method: 'GET', path: '/pets', url: 'a' } as never)],
])('an unknown property is a TypeError, and nothing is sent: %s', async (message, call) => {
  const fetch = mock(async () => new Response())
  const client = newClient({ baseUrl, fetch })
  await expect((async () => call(client))()).rejects.toThrow(TypeError)
  await expect((async () => call(client))()).rejects.toThrow(`Unknown property ${message}`)
  expect(fetch).not.toHaveBeenCalled()
})
