// Hono on Bun with bun:sqlite, with Hono's own validator.
import { Database } from 'bun:sqlite'
import { Hono } from 'hono'
import { validator } from 'hono/validator'
import { nextLink, openPets, readNewPet, readPage } from './pets.js'

const [port, file] = process.argv.slice(2)
const credential = `Bearer ${process.env['PETSTORE_API_KEY']}`
const pets = openPets(new Database(file))
const app = new Hono()

const refuse = (c, status, code, message) => c.json({ code, message, status }, status)

app.use('/v1/*', async (c, next) => {
  if (c.req.header('authorization') === credential) return next()
  return refuse(c, 401, 'invalid_api_key', 'The API key is missing or unknown')
})

app.get('/v1/pets', c => {
  const status = c.req.query('status')
  const asked = readPage(c.req.query('limit'), status, c.req.query('cursor'))
  if (!asked) return refuse(c, 400, 'invalid_request', 'A parameter is invalid')
  const page = pets.list(asked)
  if (page.more) c.header('Link', nextLink(asked.limit, status, page.pets.at(-1).id))
  return c.json(page.pets)
})

app.get('/v1/pets/:petId', c => {
  const pet = pets.get(Number(c.req.param('petId')))
  return pet ? c.json(pet) : refuse(c, 404, 'pet_not_found', 'No animal has this id')
})

const newPet = validator(
  'json',
  (sent, c) => readNewPet(sent) ?? refuse(c, 400, 'invalid_request', 'A field is invalid'),
)

app.post('/v1/pets', newPet, c => {
  const pet = pets.create(c.req.valid('json'))
  return c.json(pet, 201, { Location: `/v1/pets/${pet.id}` })
})

Bun.serve({ hostname: '127.0.0.1', port: Number(port), development: false, fetch: app.fetch })
