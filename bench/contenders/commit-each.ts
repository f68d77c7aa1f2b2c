// Our own service, but for one thing: each POST commits by itself, on the thread that serves.
import { createLog } from '../../src/cli/log.ts'
import { createProcessIo } from '../../src/cli/process-io.ts'
import { App } from '../../src/http/app.ts'
import { listen } from '../../src/http/server.ts'
import { openStores } from '../../src/store/open.ts'
import { Committer } from '../../src/store/sqlite/writer-thread.ts'

const [port, file = ''] = process.argv.slice(2)
const stores = await openStores(`sqlite:${file}`, { create: true })
const committer = new Committer(file)
const app = new App({
  keys: stores.keys,
  pets: {
    list: page => stores.pets.list(page),
    get: id => stores.pets.get(id),
    createOnce: (pet, key) => stores.pets.createOnce(pet, key),
    deleteExpiredKeys: (now, max) => stores.pets.deleteExpiredKeys(now, max),
    version: () => stores.pets.version?.(),
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
  log: createLog({ level: 'info', isTerminal: false, write: createProcessIo().err }),
})
listen(app, { host: '127.0.0.1', port: Number(port) })
