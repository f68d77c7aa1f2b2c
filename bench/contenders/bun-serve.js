// Bun.serve with the petstore's routes behind its key, for the contenders without a framework.
import { credential, errors, nextLink, port } from './pets.js'

export const refuse = error => Response.json(error, { status: error.status })

export const queryOf = url => Object.fromEntries(new URLSearchParams(url.split('?')[1]))

export function respondPage(asked, { pets, more }) {
  return Response.json(pets, more ? { headers: { Link: nextLink(asked, pets) } } : {})
}

export function respondCreated(pet) {
  return Response.json(pet, { status: 201, headers: { Location: `/v1/pets/${pet.id}` } })
}

const withKey = handler => request =>
  request.headers.get('authorization') === credential ? handler(request) : refuse(errors.unknownKey)

export function serve({ listPets, getPet, createPet }) {
  Bun.serve({
    hostname: '127.0.0.1',
    port,
    development: false,
    routes: {
      '/v1/pets': { GET: withKey(listPets), POST: withKey(createPet) },
      '/v1/pets/:petId': { GET: withKey(getPet) },
    },
  })
}
