// Express 5 and better-sqlite3, without the optional headers `ETag` and `X-Powered-By`.
import Database from 'better-sqlite3'
import express from 'express'
import { nextLink, openPets, readNewPet, readPage } from './pets.js'

const [port, file] = process.argv.slice(2)
const credential = `Bearer ${process.env['PETSTORE_API_KEY']}`
const pets = openPets(new Database(file))
const app = express().disable('x-powered-by').disable('etag')

const refuse = (response, status, code, message) => response.status(status).json({ code, message, status })

app.use((request, response, next) => {
  if (request.headers.authorization === credential) return next()
  refuse(response, 401, 'invalid_api_key', 'The API key is missing or unknown')
})

app.get('/v1/pets', (request, response) => {
  const { limit, status, cursor } = request.query
  const asked = readPage(limit, status, cursor)
  if (!asked) return refuse(response, 400, 'invalid_request', 'A parameter is invalid')
  const page = pets.list(asked)
  if (page.more) response.set('Link', nextLink(asked.limit, status, page.pets.at(-1).id))
  response.json(page.pets)
})

app.get('/v1/pets/:petId', (request, response) => {
  const pet = pets.get(Number(request.params.petId))
  if (!pet) return refuse(response, 404, 'pet_not_found', 'No animal has this id')
  response.json(pet)
})

app.post('/v1/pets', express.json(), (request, response) => {
  const sent = readNewPet(request.body)
  if (!sent) return refuse(response, 400, 'invalid_request', 'A field is invalid')
  const pet = pets.create(sent)
  response.status(201).location(`/v1/pets/${pet.id}`).json(pet)
})

app.use((_error, _request, response, _next) => refuse(response, 400, 'invalid_json', 'The body is not JSON'))

app.listen(Number(port), '127.0.0.1')
