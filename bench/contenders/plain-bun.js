// Bun.serve and bun:sqlite, in the shortest form that does the work.
import { Database } from 'bun:sqlite'
import { nextLink, openPets, readNewPet, readPage } from './pets.js'

const [port, file] = process.argv.slice(2)
const credential = `Bearer ${process.env['PETSTORE_API_KEY']}`
const pets = openPets(new Database(file))

const refuse = (status, code, message) => Response.json({ code, message, status }, { status })

const withKey = handler => request =>
  request.headers.get('authorization') === credential
    ? handler(request)
    : refuse(401, 'invalid_api_key', 'The API key is missing or unknown')

function listPets({ url }) {
  const { limit, status, cursor } = Object.fromEntries(new URLSearchParams(url.split('?')[1]))
  const asked = readPage(limit, status, cursor)
  if (!asked) return refuse(400, 'invalid_request', 'A parameter is invalid')
  const { pets: found, more } = pets.list(asked)
  return Response.json(found, more ? { headers: { Link: nextLink(asked.limit, status, found.at(-1).id) } } : {})
}

function getPet({ params }) {
  const pet = pets.get(Number(params.petId))
  return pet ? Response.json(pet) : refuse(404, 'pet_not_found', 'No animal has this id')
}

async function createPet(request) {
  const sent = readNewPet(await request.json().catch(() => undefined))
  if (!sent) return refuse(400, 'invalid_request', 'The body is not JSON, or a field is invalid')
  const pet = pets.create(sent)
  return Response.json(pet, { status: 201, headers: { Location: `/v1/pets/${pet.id}` } })
}

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(port),
  development: false,
  routes: {
    '/v1/pets': { GET: withKey(listPets), POST: withKey(createPet) },
    '/v1/pets/:petId': { GET: withKey(getPet) },
  },
})
