import { int64, invalid } from '../field.ts'
import { newPetRequired, petName, petStatus } from '../pet.ts'
import type { BodyRow, ErrorCode, HeaderId, OperationRow, Parameter } from './operations.ts'
import {
  errorCodes,
  errorHeaderIds,
  headers,
  operationHeaderIds,
  operations,
  parameters,
  retriedCodes,
  sharedErrors,
  versionPrefix,
} from './operations.ts'
import { explainCode } from './response.ts'

export interface PublishedUrls {
  readonly publicUrl: string | undefined
  readonly stagingUrl: string | undefined
}

/** Generators use the first server. The relative one works behind any proxy that keeps the path. */
export function listServers({ publicUrl, stagingUrl }: PublishedUrls) {
  const isStaging = publicUrl === stagingUrl
  return [
    ...(publicUrl === undefined ? [] : [{ url: publicUrl, description: isStaging ? 'Staging' : 'Production' }]),
    { url: versionPrefix, description: 'This instance' },
    ...(stagingUrl === undefined || isStaging ? [] : [{ url: stagingUrl, description: 'Staging' }]),
  ]
}

/**
 * The OpenAPI 3.1 document: strict about requests, whose schemas come from the fields that read them, and open about
 * responses, so that generated clients accept later additions.
 */
export function openApiDocument(servers: ReturnType<typeof listServers>) {
  const paths: Record<string, Record<string, ReturnType<typeof describeOperation>>> = {}
  for (const [id, row] of Object.entries<OperationRow>(operations)) {
    paths[row.path] = { ...paths[row.path], [row.method.toLowerCase()]: describeOperation(id, row) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Pet store',
      version: '1.0.0',
      summary: 'A catalogue of the animals that a store offers.',
      description:
        'List animals, add one, fetch one by its identifier (deprecated); change and remove them (experimental: these operations may change in a minor version). Every operation needs an API key as bearer token. Integers use the whole 64-bit range: use a parser that does not round them. Do not cache responses. Later versions may add properties and headers to responses: ignore those that you do not know.',
      contact: { name: 'The operator of this service' },
      license: { name: 'MIT License', identifier: 'MIT' },
    },
    servers,
    security: [{ bearerAuth: [] }],
    tags: [{ name: 'pets', description: 'The animals of the catalogue.' }],
    paths,
    components: {
      securitySchemes: { bearerAuth },
      schemas,
      parameters: Object.fromEntries(Object.values(parameters).map(one => [one.id, describeParameter(one)])),
      headers: Object.fromEntries(
        Object.entries(headers).map(([id, { name: _, ...header }]) => [id, { ...header, schema: { type: 'string' } }]),
      ),
      responses: {
        ...Object.fromEntries(Object.entries(sharedErrors).map(([name, codes]) => [name, describeErrors(codes)])),
        OtherError: describeErrors(
          ['not_found', 'method_not_allowed'],
          'A wrong address, or an error that a later version adds. ',
        ),
      },
    },
  }
}

const refer = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` })

const bearerAuth = { type: 'http', scheme: 'bearer', description: 'The API key: `Authorization: Bearer <API_KEY>`.' }

/** Beyond 2^53, and even: tools that read numbers as doubles still show it exactly. */
const largeId = 9007199254740994
const rex = { name: 'Rex', categoryId: 7, status: 'available' }
const storedRex = { id: 1, ...rex, categoryId: largeId }
const examples = { NewPet: rex, PetChanges: { status: 'sold' }, Pet: storedRex, Pets: [storedRex] }
const status = refer('schemas', 'PetStatus')
const categoryId = {
  ...int64.schema,
  description: 'The category of the animal. It does not have to exist.',
  examples: [largeId],
}

const newName = {
  ...petName.schema,
  description: 'The name, stored exactly as sent. It cannot be only white space.',
  examples: ['Rex'],
}

const schemas = {
  PetStatus: { ...petStatus.schema, description: 'Availability of the animal.', examples: ['available'] },
  NewPet: {
    type: 'object',
    description: 'An animal to add. The service assigns its identifier and ignores other properties.',
    required: newPetRequired,
    properties: { name: newName, categoryId, status },
  },
  PetChanges: {
    type: 'object',
    description: 'What to change of an animal. Absent properties do not change; others are ignored.',
    properties: {
      name: newName,
      categoryId,
      status: { oneOf: [status, { type: 'null' }], description: 'The new status; null removes it.' },
    },
  },
  Pet: {
    type: 'object',
    description: 'An animal of the catalogue. It has no status if none was sent.',
    required: ['id', ...newPetRequired],
    properties: {
      id: { ...int64.schema, description: 'The identifier, assigned on creation.', examples: [1] },
      name: { type: 'string', description: 'The name, exactly as sent.', examples: ['Rex'] },
      categoryId,
      status,
    },
  },
  Pets: {
    type: 'array',
    description: 'A page of animals, in ascending order of their identifiers.',
    items: refer('schemas', 'Pet'),
    examples: [examples.Pets],
  },
  Error: {
    type: 'object',
    description: 'Why a request failed.',
    required: ['code', 'message', 'status'],
    properties: {
      code: {
        type: 'string',
        'x-extensible-enum': Object.keys(errorCodes),
        description: `For programs. The set may grow: handle an unknown code by its status. Known codes: ${Object.keys(errorCodes).join(', ')}.`,
        examples: ['invalid_request'],
      },
      message: {
        type: 'string',
        description: 'For people. Names every problem of the request.',
        examples: [invalid('name', '', petName)],
      },
      status: { type: 'integer', description: 'The HTTP status of the response.', examples: [400] },
    },
  },
}

/** Tools send an example beside the schema, so only a path has one there. Some send any, so a cursor has none. */
function describeParameter({ name, in: place, schema, description, example }: Parameter) {
  if (place === 'path') return { name, in: place, required: true, description, schema, example }
  const shown =
    schema === petStatus.schema ? status : { ...schema, ...(example !== undefined && { examples: [example] }) }
  return { name, in: place, description, schema: shown }
}

function referToHeaders(ids: readonly HeaderId[]) {
  return Object.fromEntries(['X-Request-Id' as const, ...ids].map(id => [headers[id].name ?? id, refer('headers', id)]))
}

function describeContent(schema: keyof typeof examples, mediaTypes: readonly string[] = ['application/json']) {
  const described = { schema: refer('schemas', schema), example: examples[schema] }
  return { content: Object.fromEntries(mediaTypes.map(type => [type, described])) }
}

function describeErrors(codes: readonly ErrorCode[], introduction = '', ownHeaders: readonly HeaderId[] = []) {
  const [example] = codes.map(code => ({ code, message: explainCode(code), status: errorCodes[code].status }))
  const rows = codes.map(code => {
    const { status, meaning, action } = errorCodes[code]
    return [code, { status, meaning, action, retry: retriedCodes.includes(code) }] as const
  })
  return {
    description: introduction + codes.map(code => `\`${code}\`: ${explainCode(code)}.`).join(' '),
    'x-error-codes': Object.fromEntries(rows),
    headers: referToHeaders([...codes.flatMap(code => errorHeaderIds[code] ?? operationHeaderIds), ...ownHeaders]),
    content: { 'application/json': { schema: refer('schemas', 'Error'), example } },
  }
}

function describeOperation(operationId: string, row: OperationRow) {
  const { summary, description, stability, parameters, body, returns, result, deprecated } = row
  // Not in the errors that every operation shares.
  const deprecationIds: readonly HeaderId[] = deprecated ? ['Deprecation', 'Sunset', 'DeprecationLinks'] : []
  return {
    operationId,
    tags: ['pets'],
    summary,
    description,
    ...(deprecated && { deprecated: true }),
    ...(stability && { 'x-stability': stability }),
    parameters: parameters.map(({ id }) => refer('parameters', id)),
    ...(body && { requestBody: describeBody(body) }),
    responses: {
      [row.status]: {
        description: result,
        ...(returns && describeContent(returns)),
        headers: referToHeaders([...operationHeaderIds, ...(row.headers ?? []), ...deprecationIds]),
      },
      ...describeErrorsByStatus(row, deprecationIds),
      default: refer('responses', 'OtherError'),
    },
  }
}

function describeBody({ schema, mediaTypes }: BodyRow) {
  return { required: true, description: schemas[schema].description, ...describeContent(schema, mediaTypes) }
}

/** One response for each status: the shared one, unless the operation has errors of its own with that status. */
function describeErrorsByStatus({ errors, body }: OperationRow, ownHeaders: readonly HeaderId[]) {
  const shared = Object.entries(sharedErrors)
  const byStatus = Map.groupBy([...shared.flatMap(([, codes]) => codes), ...errors], code => errorCodes[code].status)
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => {
      const [name] = shared.find(([, sharedCodes]) => codes.every(code => sharedCodes.includes(code))) ?? []
      if (name !== undefined) return [status, refer('responses', name)]
      const ofMediaType = body && codes.includes('unsupported_media_type') ? [body.mediaTypesHeader] : []
      return [status, describeErrors(codes, '', [...ownHeaders, ...ofMediaType])]
    }),
  )
}
