// Bun.serve and Bun.sql, in the shortest form that does the work: the petstore's SELECTs, and creations that lock a
// counter, so that ids become visible in order.
import { SQL } from 'bun'
import { nextLink, pageOf, petOf, readNewPet, readPage } from './pets.js'

const credential = `Bearer ${process.env['PETSTORE_API_KEY']}`
const sql = new SQL(process.env['DATABASE_URL'])
const refuse = (status, code, message) => Response.json({ code, message, status }, { status })
const withKey = handler => request =>
  request.headers.get('authorization') === credential
    ? handler(request)
    : refuse(401, 'invalid_api_key', 'The API key is missing or unknown')
// Bun.sql returns a bigint as text.
const numbered = ({ id, name, category_id, status }) => ({
  id: Number(id),
  name,
  categoryId: Number(category_id),
  status,
})

async function listPets({ url }) {
  const { limit, status, cursor } = Object.fromEntries(new URLSearchParams(url.split('?')[1]))
  const asked = readPage(limit, status, cursor)
  if (!asked) return refuse(400, 'invalid_request', 'A parameter is invalid')
  const { after, limit: rows } = { ...asked, limit: asked.limit + 1 }
  const found = status
    ? await sql`SELECT id, name, category_id, status FROM pets WHERE status = ${status} AND id > ${after} ORDER BY id LIMIT ${rows}`
    : await sql`SELECT id, name, category_id, status FROM pets WHERE id > ${after} ORDER BY id LIMIT ${rows}`
  const { pets, more } = pageOf(found.map(numbered), asked.limit)
  return Response.json(pets, more ? { headers: { Link: nextLink(asked.limit, status, pets.at(-1).id) } } : {})
}

async function getPet({ params }) {
  const [row] = await sql`SELECT id, name, category_id, status FROM pets WHERE id = ${params.petId}`
  return row ? Response.json(petOf(numbered(row))) : refuse(404, 'pet_not_found', 'No animal has this id')
}

async function createPet(request) {
  const sent = readNewPet(await request.json().catch(() => undefined))
  if (!sent) return refuse(400, 'invalid_request', 'The body is not JSON, or a field is invalid')
  const id = Number(await create(sent))
  return Response.json({ id, ...sent }, { status: 201, headers: { Location: `/v1/pets/${id}` } })
}

async function create({ name, categoryId, status = null }) {
  const [{ id }] = await sql`
    WITH counter AS (UPDATE pet_ids SET last_id = last_id + 1 RETURNING last_id)
    INSERT INTO pets SELECT last_id, ${name}::text, ${categoryId}::bigint, ${status}::text FROM counter RETURNING id`
  return id
}

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(process.argv[2]),
  development: false,
  routes: {
    '/v1/pets': { GET: withKey(listPets), POST: withKey(createPet) },
    '/v1/pets/:petId': { GET: withKey(getPet) },
  },
})
