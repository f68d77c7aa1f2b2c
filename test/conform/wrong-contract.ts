import type { Wrongness } from '../support/wrong-server.ts'
import { answering, changedList, listing, refusing, rewriting, taking, trusting } from '../support/wrong-server.ts'

/** A part of a check's name, a part of its finding, and the server's defect. Without a defect, the server is the plain one. */
export type Row = readonly [check: string, found: string, wrongness?: Wrongness]

type JsonObject = Readonly<Record<string, unknown>>

const list = /^\/pets$/
const one = /^\/pets\/./
const posts = (body: RegExp) => refusing(400, asked => asked.method === 'POST' && body.test(asked.body))
const with201 = (change: JsonObject) => answering(201, pet => ({ ...pet, ...change }))
const withEach = (change: (pet: JsonObject) => JsonObject) => listing(pet => ({ ...pet, ...change(pet) }))
const withoutFilter = rewriting(query => query.delete('status'))
const rounded = (pet: JsonObject) => ({ ...pet, categoryId: BigInt(Number(pet['categoryId'])) })
const typed = (isWrong: (status: number) => boolean, type: string): Wrongness => ({
  contentType: ({ status }) => (isWrong(status) ? type : 'application/json'),
})

export const wrongContract: readonly Row[] = [
  ['the base address ends in /v1', '/api', { prefix: '/api' }],
  ['GET /pets without a key is 401', 'returned 200', trusting('GET', list, 'none')],
  ['POST /pets without a key is 401', 'returned 201', trusting('POST', list, 'none')],
  ['GET /pets/{petId} without a key is 401', 'returned 200', trusting('GET', one, 'none')],
  ['GET /pets with a wrong key is 401', 'returned 200', trusting('GET', list, 'wrong')],
  ['POST /pets with a wrong key is 401', 'returned 201', trusting('POST', list, 'wrong')],
  ['GET /pets/{petId} with a wrong key is 401', 'returned 200', trusting('GET', one, 'wrong')],

  ['POST /pets is 201 with the Pet and its id', 'no id', answering(201, ({ id: _, ...pet }) => pet)],
  ['POST /pets returns the name and the categoryId as sent', 'REX', with201({ name: 'REX' })],
  ['POST /pets accepts the status available', '400', posts(/"available"/)],
  ['POST /pets accepts the status pending', '400', posts(/"pending"/)],
  ['POST /pets accepts the status sold', '"pending"', with201({ status: 'pending' })],
  ['POST /pets accepts an animal without a status', '400', posts(/^(?!.*"status")/)],
  ['two new animals get different ids', '7 for both', with201({ id: 7n })],
  ['POST /pets returns the categoryId 9007199254740993 exactly', '740992', answering(201, rounded)],
  ['POST /pets returns the categoryId 9223372036854775807 exactly', '77580', answering(201, rounded)],

  ['POST /pets without a body is 400', '201', taking(/^$/)],
  ['POST /pets without a name is 400', '201', taking(/^(?!.*"name").*categoryId/)],
  ['POST /pets without a categoryId is 400', '201', taking(/^(?!.*"categoryId").*name/)],
  ['POST /pets with a name that is not a string is 400', '"name":true', taking(/"name":true/)],
  ['POST /pets with a categoryId that is not an integer is 400', '"7"', taking(/"categoryId":"7"/)],
  ['POST /pets with a categoryId above 64 bits is 400', '75808', taking(/9223372036854775808/)],
  ['POST /pets with an unknown status is 400', 'Available', taking(/"Available"/)],
  ['POST /pets with a body that is not an object is 400', 'POST /pets []', taking(/^\[\]$/)],
  ['POST /pets with a body that is not JSON is 400', 'name=Rex', taking(/^name=Rex$/)],

  ['GET /pets is 200 with a JSON array', '{"pets":[', changedList(pets => ({ pets }))],
  ['the id of every listed animal is an int64', 'the id "25"', withEach(({ id }) => ({ id: String(id) }))],
  ['the name of every listed animal is a string', 'null', withEach(() => ({ name: null }))],
  ['the categoryId of every listed animal', 'the categoryId 1.5', withEach(() => ({ categoryId: 1.5 }))],
  ['the status of every listed animal', 'SOLD', withEach(() => ({ status: 'SOLD' }))],
  ['no two listed animals have the same id', 'id 1 twice', withEach(() => ({ id: 1n }))],
  ['GET /pets without a limit', 'lists 25', rewriting(query => query.has('limit') || query.set('limit', '100'))],
  ['GET /pets?limit=1 ', 'lists 20', rewriting(query => query.delete('limit'))],
  ['GET /pets?limit=20 ', 'lists 21', rewriting(query => query.get('limit') === '20' && query.set('limit', '21'))],
  ['GET /pets?limit=100 ', '400', refusing(400, ({ query }) => query.get('limit') === '100')],
  ['GET /pets?status=available', 'with the status ', withoutFilter],
  ['GET /pets?status=pending', 'with the status ', withoutFilter],
  ['GET /pets?status=sold', 'status absent', listing(({ status: _, ...pet }) => pet)],
  ['limit and status together', 'lists 8', rewriting(query => query.has('status') && query.delete('limit'))],
  ['in the list of its status', 'returned 200 []', changedList((pets, { query }) => (query.has('status') ? [] : pets))],

  ['the same animal as the list', '"REX"', answering(200, pet => ({ ...pet, name: 'REX' }))],
  ['the same animal as POST /pets', '992', answering(200, rounded)],
  [
    'GET /pets/{petId} with the id of no animal is 404',
    'returned 200',
    { instead: ({ path }) => (one.test(path) ? { status: 200, body: {} } : undefined) },
  ],

  ['responses are application/json', 'text/html', typed(status => status === 200, 'text/html')],
  ['errors are application/json', 'problem+json', typed(status => status >= 400, 'application/problem+json')],
  ['the code of every Error is a string', 'the code 404', answering(404, body => ({ ...body, code: 404n }))],
  ['the message of every Error is a string', 'no message', answering(401, ({ message: _, ...body }) => body)],
  ['the status of every Error', 'the status 500', answering(400, body => ({ ...body, status: 500n }))],
]
