// Our own service, but for one thing: each POST commits by itself, on the thread that serves.
import { BufferedLog } from '../../src/cli/log.ts'
import { createProcessIo } from '../../src/cli/output.ts'
import { createApp } from '../../src/http/app.ts'
import { listen } from '../../src/http/serve.ts'
import { openStores } from '../../src/store/open.ts'
import { createCommitter } from '../../src/store/sqlite/committer.ts'

const [port, file = ''] = process.argv.slice(2)
const stores = await openStores(`sqlite:${file}`, { create: true })
const committer = createCommitter(file)
const app = createApp({
  keys: stores.keys,
  pets: {
    ...stores.pets,
    create(pet) {
      const { values, failures } = committer.commit([
        ['createPet', pet.name, pet.categoryId, pet.status ?? null],
      ])
      const failure = failures?.get(0)
      if (failure) throw new Error(failure.message)
      return { ...pet, id: values[0] as bigint }
    },
  },
  environmentKey: process.env['PETSTORE_API_KEY'],
  log: new BufferedLog({ level: 'info', isTerminal: false, write: createProcessIo().err }),
})
listen(app, { host: '127.0.0.1', port: Number(port) })
