import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { animalsAfter } from '../harness/catalogue.ts'
import type { Contender } from '../harness/contender.ts'
import { scattered, type WorkName } from '../harness/work.ts'
import type { Requests } from '../load/load.ts'

const modules = join(import.meta.dir, '../node_modules')

/** It writes its whole file anew for each creation: a million animals would be no comparison at all. */
const jsonServerAnimals = 1_000

export const jsonServer: Contender = {
  name: 'json-server',
  title: 'json-server',
  about: `The product: a JSON file as a service. No key, no rules, nothing forced onto the disk; it is given ${jsonServerAnimals.toLocaleString('en')} animals, because it writes its whole file for each creation`,
  needs: { packages: ['json-server'], programs: ['node'] },
  works: ['list', 'list-1', 'list-512', 'filtered', 'get', 'create', 'mix'],
  rules: ['animals', 'filter', 'paging', 'get', 'create'],
  animalsMax: jsonServerAnimals,
  prepare({ file }) {
    writeFileSync(`${file}.json`, JSON.stringify({ pets: animalsAfter(0, jsonServerAnimals) }))
    writeFileSync(`${file}-routes.json`, JSON.stringify({ '/v1/*': '/$1' }))
  },
  command: ({ port, file }) => [
    'node',
    join(modules, 'json-server/lib/cli/bin.js'),
    ...['--host', '127.0.0.1', '--port', String(port), '--quiet', '--routes', `${file}-routes.json`],
    `${file}.json`,
  ],
  requests: jsonServerRequests,
}

function jsonServerRequests(work: WorkName, animals: number): Requests {
  const path = '/v1/pets?_page=1&_limit=20'
  const ids = scattered('/v1/pets/', animals)
  switch (work) {
    case 'filtered':
      return { kind: 'read', path: '/v1/pets?status=available&_limit=100' }
    case 'get':
      return { kind: 'get', ...ids }
    case 'create':
      return { kind: 'create', createPath: '/v1/pets' }
    case 'mix':
      return { kind: 'mix', path, createPath: '/v1/pets', ...ids }
    default:
      return { kind: 'read', path }
  }
}

export const prism: Contender = {
  name: 'prism',
  title: 'Prism mock',
  about:
    'The product: it answers the examples of our own OpenAPI document, and holds requests against it. It keeps nothing, and a list has as many animals as its example',
  needs: { packages: ['@stoplight/prism-cli'], programs: ['node'] },
  works: ['list', 'list-1', 'list-512', 'get'],
  rules: ['example', 'key', 'refusal'],
  prepare: ({ file }, { answers }) => writeFileSync(`${file}.json`, answers?.document ?? ''),
  command: ({ port, file }) => [
    'node',
    join(modules, '@stoplight/prism-cli/dist/index.js'),
    ...['mock', '--host', '127.0.0.1', '--port', String(port), '--verboseLevel', 'error'],
    `${file}.json`,
  ],
  requests(work, animals) {
    if (work === 'get') return { kind: 'get', ...scattered('/pets/', animals) }
    return { kind: 'read', path: '/pets' }
  },
}
