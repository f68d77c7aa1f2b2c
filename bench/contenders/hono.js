// Hono on Bun with bun:sqlite, with Hono's own validator.
import { Database } from 'bun:sqlite'
import { Hono } from 'hono'
import { validator } from 'hono/validator'
import { credential, errors, nextLink, openPets, port, readNewPet, readPage } from './pets.js'

const pets = openPets(Database)
const app = new Hono()

const refuse = (c, error) => c.json(error, error.status)

app.use('/v1/*', async (c, next) => {
  if (c.req.header('authorization') === credential) return next()
  return refuse(c, errors.unknownKey)
})

app.get('/v1/pets', c => {
  const [limit, status, cursor] = [c.req.query('limit'), c.req.query('status'), c.req.query('cursor')]
  const asked = readPage({ limit, status, cursor })
  if (!asked) return refuse(c, errors.invalid)
  const page = pets.list(asked)
  if (page.more) c.header('Link', nextLink(asked, page.pets))
  return c.json(page.pets)
})

app.get('/v1/pets/:petId', c => {
  const pet = pets.get(Number(c.req.param('petId')))
  return pet ? c.json(pet) : refuse(c, errors.notFound)
})

const newPet = validator('json', (sent, c) => readNewPet(sent) ?? refuse(c, errors.invalid))

app.post('/v1/pets', newPet, c => {
  const pet = pets.create(c.req.valid('json'))
  return c.json(pet, 201, { Location: `/v1/pets/${pet.id}` })
})

Bun.serve({ hostname: '127.0.0.1', port, development: false, fetch: app.fetch })
