// Bun.serve and Bun.sql, in the shortest form that does the work: the petstore's SELECTs, and creations that lock a
// counter, so that ids become visible in order.
import { SQL } from 'bun'
import { queryOf, refuse, respondCreated, respondPage, serve } from './bun-serve.js'
import { errors, pageOf, petOf, readNewPet, readPage } from './pets.js'

const sql = new SQL(process.env['DATABASE_URL'])
await sql`CREATE TABLE pet_ids AS SELECT max(id) AS last_id FROM pets`

serve({
  async listPets({ url }) {
    const asked = readPage(queryOf(url))
    if (!asked) return refuse(errors.invalid)
    const { limit, status, after } = asked
    const rows = status
      ? await sql`
          SELECT id, name, category_id, status FROM pets
          WHERE status = ${status} AND id > ${after} ORDER BY id LIMIT ${limit + 1}`
      : await sql`
          SELECT id, name, category_id, status FROM pets
          WHERE id > ${after} ORDER BY id LIMIT ${limit + 1}`
    return respondPage(asked, pageOf(rows.map(numbered), limit))
  },
  async getPet({ params }) {
    const [row] = await sql`SELECT id, name, category_id, status FROM pets WHERE id = ${params.petId}`
    return row ? Response.json(petOf(numbered(row))) : refuse(errors.notFound)
  },
  async createPet(request) {
    const sent = readNewPet(await request.json().catch(() => undefined))
    if (!sent) return refuse(errors.invalid)
    const { name, categoryId, status = null } = sent
    const [{ id }] = await sql`
      WITH counter AS (UPDATE pet_ids SET last_id = last_id + 1 RETURNING last_id)
      INSERT INTO pets SELECT last_id, ${name}::text, ${categoryId}::bigint, ${status}::text FROM counter RETURNING id`
    return respondCreated({ id: Number(id), ...sent })
  },
})

/** Bun.sql returns a bigint as text. */
function numbered({ id, name, category_id, status }) {
  return { id: Number(id), name, categoryId: Number(category_id), status }
}
