// Puts the catalogue into a database's table `pets`, in place of what a run before has left there.
import { openPool } from './pg.js'

const [animals] = process.argv.slice(2)
const pool = await openPool(process.env['DATABASE_URL'])
await pool.query('TRUNCATE pets RESTART IDENTITY')
await pool.query(
  `INSERT INTO pets (name, category_id, status)
   SELECT 'Animal ' || n, n % 50, (ARRAY['available', 'pending', 'sold'])[n % 3 + 1]
   FROM generate_series(1, $1::int) AS n`,
  [animals],
)
await pool.query('ANALYZE pets')
await pool.end()
