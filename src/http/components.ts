// What the OpenAPI document's operations share: schemas, headers, and how an operation can fail.
import type { JsonSchema } from '../field.ts'
import { int64 } from '../field.ts'
import { pageLimit } from '../page.ts'
import { newPetFields, newPetRequired, petStatus } from '../pet.ts'
import { type ProblemCode, problems } from './problem.ts'

type Ref = { readonly $ref: string }
export const schemaRef = (name: string): Ref => ({ $ref: `#/components/schemas/${name}` })
export const headerRef = (name: string): Ref => ({ $ref: `#/components/headers/${name}` })
export const json = (schema: JsonSchema, example?: unknown) => ({
  'application/json': example === undefined ? { schema } : { schema, example },
})

const newPetProperties = Object.fromEntries(
  Object.entries(newPetFields).map(([name, field]) => [
    name,
    name === 'status' ? schemaRef('PetStatus') : field.schema,
  ]),
)

export const schemas = {
  PetStatus: { ...petStatus.schema, description: 'Availability of the animal.' },
  NewPet: {
    type: 'object',
    description: 'An animal to add. Its identifier is assigned by the service; other properties are ignored.',
    required: newPetRequired,
    properties: newPetProperties,
  },
  Pet: {
    type: 'object',
    description: 'An animal of the catalogue. It has no status where none was given.',
    required: ['id', ...newPetRequired],
    properties: { id: { ...int64.schema, description: 'Assigned on creation.' }, ...newPetProperties },
    additionalProperties: false,
  },
  Pets: { type: 'array', items: schemaRef('Pet'), maxItems: pageLimit.schema['maximum'] },
  Error: {
    type: 'object',
    description: 'Why a request failed.',
    required: ['code', 'message', 'status'],
    properties: {
      code: {
        type: 'string',
        'x-extensible-enum': Object.keys(problems),
        description: 'For programs. The set may grow: treat a code that you do not know by its status.',
      },
      message: { type: 'string', description: 'For people: every problem of the request.' },
      status: { type: 'integer', description: 'The HTTP status of the response.' },
    },
    additionalProperties: false,
  },
}

const header = (description: string, schema: JsonSchema = { type: 'string' }) => ({ description, schema })

export const headers = {
  'X-Request-Id': {
    ...header("The client's own id where it sent a sane one, else ours; the log has it too."),
    required: true,
  },
  'Cache-Control': { ...header('Nothing is to be stored.', { const: 'no-store' }), required: true },
  'X-Content-Type-Options': { ...header('The type is as it says.', { const: 'nosniff' }), required: true },
  'WWW-Authenticate': { ...header('The bearer challenge (RFC 6750).'), required: true },
  Allow: { ...header('The methods that the path takes.'), required: true },
  'Retry-After': header('Seconds to wait. Absent if waiting does not help.', {
    type: 'string',
    pattern: '^[0-9]+$',
  }),
  'Preference-Applied': header('Present where `Prefer: handling=strict` was honoured.'),
  'Idempotency-Replayed': header(
    '`true` where the answer is that of an earlier request with the same Idempotency-Key.',
    {
      const: 'true',
    },
  ),
  RateLimit: header('What is left of the rate, where one is configured.'),
  'RateLimit-Policy': header('The rate, where one is configured.'),
  NextPage: header('While more animals follow: the next page, as `rel="next"` (RFC 8288).'),
  Location: { ...header('The address of the new animal.'), required: true },
  Deprecation: { ...header('Since when the operation is deprecated (RFC 9745).'), required: true },
  Sunset: { ...header('When the operation is removed (RFC 8594).'), required: true },
  DeprecationLinks: {
    ...header('`rel="deprecation"`: its documentation. `rel="successor-version"`: its replacement.'),
    required: true,
  },
}

type Headers = Record<string, Ref>

export const commonHeaders: Headers = {
  'X-Request-Id': headerRef('X-Request-Id'),
  'Cache-Control': headerRef('Cache-Control'),
  'X-Content-Type-Options': headerRef('X-Content-Type-Options'),
  'Preference-Applied': headerRef('Preference-Applied'),
  RateLimit: headerRef('RateLimit'),
  'RateLimit-Policy': headerRef('RateLimit-Policy'),
}

export const deprecationHeaders: Headers = {
  Deprecation: headerRef('Deprecation'),
  Sunset: headerRef('Sunset'),
  Link: headerRef('DeprecationLinks'),
}

/** The headers that a failure of this status carries besides the common ones. */
const failureHeaders: Record<number, Headers> = {
  401: { 'WWW-Authenticate': headerRef('WWW-Authenticate') },
  403: { 'WWW-Authenticate': headerRef('WWW-Authenticate') },
  405: { Allow: headerRef('Allow') },
  429: { 'Retry-After': headerRef('Retry-After') },
  503: { 'Retry-After': headerRef('Retry-After') },
}

/** The failures of an operation, by status: each with its codes and what a client does about them. */
export function failures(codes: readonly ProblemCode[], extra: Partial<Record<number, Headers>> = {}) {
  const statuses = [...new Set(codes.map(code => problems[code].status))].sort((a, b) => a - b)
  return Object.fromEntries(
    statuses.map(status => {
      const own = codes.filter(code => problems[code].status === status)
      const example = { code: own[0], message: own[0] && problems[own[0]].meaning, status }
      return [
        String(status),
        {
          description: own.map(code => `\`${code}\`: ${problems[code].meaning}`).join(' '),
          headers: { ...commonHeaders, ...failureHeaders[status], ...extra[status] },
          content: json(schemaRef('Error'), example),
        },
      ]
    }),
  )
}
