// Bun.serve and bun:sqlite, in the shortest form that does the work.
import { Database } from 'bun:sqlite'
import { queryOf, refuse, respondCreated, respondPage, serve } from './bun-serve.js'
import { errors, openPets, readNewPet, readPage } from './pets.js'

const pets = openPets(Database)

serve({
  listPets({ url }) {
    const asked = readPage(queryOf(url))
    return asked ? respondPage(asked, pets.list(asked)) : refuse(errors.invalid)
  },
  getPet({ params }) {
    const pet = pets.get(Number(params.petId))
    return pet ? Response.json(pet) : refuse(errors.notFound)
  },
  async createPet(request) {
    const sent = readNewPet(await request.json().catch(() => undefined))
    return sent ? respondCreated(pets.create(sent)) : refuse(errors.invalid)
  },
})
