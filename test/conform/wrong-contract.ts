import type { Wrongness } from '../support/wrong-server.ts'
import {
  answering,
  changedList,
  listing,
  refusing,
  rewriting,
  taking,
  trusting,
} from '../support/wrongness.ts'

/** A check, something that its report says, and what a server does wrongly to be told so. */
export type Row = readonly [check: string, found: string, wrongness: Wrongness]

const list = /^\/pets$/
const one = /^\/pets\/./
const posts = (body: RegExp) => refusing(400, asked => asked.method === 'POST' && body.test(asked.body))
const half = (value: unknown) => Number(value) / 2

export const wrongContract: readonly Row[] = [
  ['the base address ends in /v1', '/api', { prefix: '/api' }],
  ['GET /pets without a key is 401', 'answered 200', trusting('GET', list, 'none')],
  ['POST /pets without a key is 401', 'answered 201', trusting('POST', list, 'none')],
  ['GET /pets/{petId} without a key is 401', 'answered 200', trusting('GET', one, 'none')],
  ['GET /pets with a wrong key is 401', 'answered 200', trusting('GET', list, 'wrong')],
  ['POST /pets with a wrong key is 401', 'answered 201', trusting('POST', list, 'wrong')],
  ['GET /pets/{petId} with a wrong key is 401', 'answered 200', trusting('GET', one, 'wrong')],

  ['POST /pets is 201 with the Pet and its id', 'without id', answering(201, ({ id: _, ...pet }) => pet)],
  ['POST /pets keeps the name and the categoryId', 'REX', answering(201, pet => ({ ...pet, name: 'REX' }))],
  ['POST /pets takes the status available', '400', posts(/"available"/)],
  ['POST /pets takes the status pending', '400', posts(/"pending"/)],
  ['POST /pets takes the status sold', '"pending"', answering(201, pet => ({ ...pet, status: 'pending' }))],
  ['POST /pets takes an animal without a status', '400', posts(/^(?!.*"status")/)],
  ['two animals that are added get two ids', '7 for both', answering(201, pet => ({ ...pet, id: 7n }))],
  [
    'a categoryId of 9007199254740993 comes back digit for digit',
    '9007199254740992',
    answering(201, rounded),
  ],
  ['a categoryId of 9223372036854775807 comes back digit for digit', '77580', answering(201, rounded)],

  ['POST /pets without a body is 400', '201', taking(/^$/)],
  ['POST /pets with an animal without a name is 400', '201', taking(/^(?!.*"name").*categoryId/)],
  ['POST /pets with an animal without a categoryId is 400', '201', taking(/^(?!.*"categoryId").*name/)],
  ['POST /pets with an animal whose name is no string is 400', '"name":true', taking(/"name":true/)],
  ['POST /pets with an animal whose categoryId is no integer is 400', '"7"', taking(/"categoryId":"7"/)],
  ['POST /pets with an animal whose categoryId is no int64 is 400', '75808', taking(/9223372036854775808/)],
  ['POST /pets with an animal whose status is another is 400', 'Available', taking(/"Available"/)],
  ['POST /pets with a body that is no object is 400', 'POST /pets []', taking(/^\[\]$/)],
  ['POST /pets with a body that is no JSON is 400', 'name=Rex', taking(/^name=Rex$/)],

  ['GET /pets is 200 with a JSON array', '{"pets":[', changedList(pets => ({ pets }))],
  [
    'the id of every listed animal is an int64',
    'the id "25"',
    listing(pet => ({ ...pet, id: String(pet['id']) })),
  ],
  ['the name of every listed animal is a string', 'null', listing(pet => ({ ...pet, name: null }))],
  [
    'the categoryId of every listed animal is an int64',
    '12.5',
    listing(pet => ({ ...pet, categoryId: half(pet['categoryId']) })),
  ],
  [
    'the status of every listed animal is available, pending or sold, or left out',
    'SOLD',
    listing(pet => ({ ...pet, status: 'SOLD' })),
  ],
  ['no two listed animals have the same id', 'id 1 twice', listing(pet => ({ ...pet, id: 1n }))],
  [
    'GET /pets without a limit lists at most 20 animals',
    'lists 25',
    rewriting(query => query.has('limit') || query.set('limit', '100')),
  ],
  [
    'limit=1 is accepted, and lists at most so many animals',
    'lists 20',
    rewriting(query => query.delete('limit')),
  ],
  [
    'limit=20 is accepted, and lists at most so many animals',
    'lists 21',
    rewriting(query => query.get('limit') === '20' && query.set('limit', '21')),
  ],
  [
    'limit=100 is accepted, and lists at most so many animals',
    '400',
    refusing(400, ({ query }) => query.get('limit') === '100'),
  ],
  ['status=available lists only such animals', 'which is', rewriting(query => query.delete('status'))],
  ['status=pending lists only such animals', 'which is', rewriting(query => query.delete('status'))],
  ['status=sold lists only such animals', 'has no status', listing(({ status: _, ...pet }) => pet)],
  [
    'limit and status hold together',
    'lists 8',
    rewriting(query => query.has('status') && query.delete('limit')),
  ],
  [
    'an animal that was added is in the list of its status',
    'answered 200 []',
    changedList((pets, { query }) => (query.has('status') ? [] : pets)),
  ],

  [
    'GET /pets/{petId} still answers, with the animal of that id',
    '410',
    refusing(410, ({ path }) => one.test(path)),
  ],
  [
    'GET /pets/{petId} gives the animal as the list has it',
    '"REX"',
    answering(200, pet => ({ ...pet, name: 'REX' })),
  ],
  ['GET /pets/{petId} gives the animal that was added', '992', answering(200, rounded)],
  [
    'GET /pets/{petId} is 404 where no animal has the id',
    'answered 200',
    { instead: ({ path }) => (one.test(path) ? { status: 200, body: {} } : undefined) },
  ],

  [
    'answers are application/json',
    'text/html',
    { contentType: ({ status }) => (status === 200 ? 'text/html' : 'application/json') },
  ],
  [
    'errors are application/json',
    'problem+json',
    { contentType: ({ status }) => (status >= 400 ? 'application/problem+json' : 'application/json') },
  ],
  ['the code of every Error is a string', '"code":404', answering(404, body => ({ ...body, code: 404n }))],
  [
    'the message of every Error is a string',
    'answered 401',
    answering(401, ({ message: _, ...body }) => body),
  ],
  [
    'the status of every Error is the HTTP status',
    '"status":500',
    answering(400, body => ({ ...body, status: 500n })),
  ],
]

/** As a double would have it. */
function rounded(pet: Readonly<Record<string, unknown>>) {
  return { ...pet, categoryId: BigInt(Number(pet['categoryId'])) }
}
