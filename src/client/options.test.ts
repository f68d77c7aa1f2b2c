import { expect, test } from 'bun:test'
import { PetstoreClient } from './index.ts'

const apiKey = 'key-that-must-stay-secret'
const baseUrl = 'https://pets.example.com/v1'

function newClient(options: object): PetstoreClient {
  return Reflect.construct(PetstoreClient, [{ apiKey, ...options }])
}

test.each([
  ['http://127.0.0.1:8080/v1//', 'http://127.0.0.1:8080/v1'],
  ['HTTPS://Pets.Example.com', 'https://pets.example.com/v1'],
  ['https://pets.example.com/shop/', 'https://pets.example.com/shop/v1'],
  [new URL('https://pets.example.com/shop/v1'), 'https://pets.example.com/shop/v1'],
])('the base address %s is read as %s', (given, read) => {
  expect(newClient({ baseUrl: given }).baseUrl).toBe(read)
})

const notHttp = ['', '/v1', './pets.db', 'ftp://a.example', 'postgres://a:1234/secret', 'localhost:80?secret', null]
const notBare = ['https://u@a', 'https://:secret@a', 'https://a/v1?q', 'https://a/v1#f']
const notHeaders = [
  ...[null, 'x-a: secret', new Headers({ Authorization: 'secret' })],
  ...['authorization', 'Accept', 'content-type', 'Idempotency-Key'].map(name => ({ [name]: 'secret' })),
  ...['secret\r\nx: y', 'secret\u0000', 'secret 犬'].map(value => ({ 'x-a': value })),
  ...['', 'a b', 'ä', 'a\n'].map(name => ({ [name]: 'secret' })),
]
const notKeys = ['', undefined, 'with space', 'secret\nx', 'secret\u00e4', 7]

test.each<[string, ...object[]]>([
  ['baseUrl is not an http or https address', ...notHttp.map(address => ({ baseUrl: address }))],
  ['did you mean http://localhost:8080?', { baseUrl: 'localhost:8080' }],
  ['did you mean https://pets.example.com?', { baseUrl: 'HTTPS//pets.example.com' }],
  ['did you mean http://pets.example.com:8443?', { baseUrl: 'htps://pets.example.com:8443' }],
  ['baseUrl has a user', ...notBare.map(address => ({ baseUrl: address }))],
  ['headers', ...notHeaders.map(headers => ({ baseUrl, headers }))],
  ['apiKey is', ...notKeys.map(key => ({ baseUrl, apiKey: key }))],
  ['Unknown property baseURL: did you mean baseUrl?', { baseURL: baseUrl }],
  ['timeoutMs is', { baseUrl, timeoutMs: 0 }, { baseUrl, timeoutMs: 2 ** 31 }],
  ['retries is', { baseUrl, retries: 2.5 }, { baseUrl, retries: -1 }],
])('a TypeError for invalid options shows no secret: %s', (named, ...invalid) => {
  for (const options of invalid) {
    const create = () => newClient(options)
    expect(create).toThrow(TypeError)
    expect(create).toThrow(named)
    expect(create).not.toThrow('secret')
  }
})
