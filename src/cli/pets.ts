import type { Command } from 'commander'
import type { PetPage } from '../client/index.ts'
import { int64, invalid } from '../field.ts'
import { parseInt64 } from '../int64.ts'
import { limitDefault } from '../page.ts'
import { petStatus } from '../pet.ts'
import { addDeploymentFlags, type DeploymentFlags, readDeployment, withPetstore } from './deployment.ts'
import { type Io, Misuse } from './io.ts'
import { createPetPrinter } from './pet-printer.ts'

interface ListFlags extends DeploymentFlags {
  readonly status?: string
  readonly limit?: string
  readonly all?: boolean
  readonly json?: boolean
}

interface AddFlags extends DeploymentFlags {
  readonly category?: string
  readonly status?: string
  readonly json?: boolean
}

interface GetFlags extends DeploymentFlags {
  readonly json?: boolean
}

export function addPetsCommands(program: Command, io: Io): void {
  const pets = command(program, 'pets', 'list, add and fetch animals of any pet store, over HTTP')
  const list = command(pets, 'list', 'show animals in ascending order of id')
    .option('--status <status>', 'only animals that are available, pending or sold')
    .option('--limit <number>', `how many animals at most, over all pages (default ${limitDefault})`)
    .option('--all', 'all animals, however many')
    .option('--json', 'for programs: one JSON object a line')
  addDeploymentFlags(list).action(async (flags: ListFlags) => listPets(flags, io))

  const add = command(pets, 'add', 'add an animal and show it with its new id')
    .argument('<name>', "the animal's name")
    .option('--category <number>', 'the id of its category, any 64-bit integer (required)')
    .option('--status <status>', 'available, pending or sold (default: none)')
    .option('--json', 'for programs: one JSON object')
  addDeploymentFlags(add).action(async (name: string, flags: AddFlags) => addPet(name, flags, io))

  const get = command(pets, 'get', 'show one animal (deprecated: goes away on 5 December 2030)')
    .argument('<id>', "the animal's id")
    .option('--json', 'for programs: one JSON object')
  addDeploymentFlags(get).action(async (id: string, flags: GetFlags) => getPet(id, flags, io))
}

function command(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).summary(description)
}

/** A page of the service holds no more. */
const pageLimitMax = 100

async function listPets(flags: ListFlags, io: Io): Promise<void> {
  const problems: string[] = []
  const deployment = readDeployment(flags, io.env, problems)
  const status = readStatus(flags.status, problems)
  const wanted = flags.all ? Number.POSITIVE_INFINITY : readLimit(flags.limit, problems)
  if (flags.all && flags.limit !== undefined) problems.push('Cannot use --all with --limit: give one of them')
  if (problems.length > 0) throw new Misuse(problems)

  await withPetstore(deployment, io, async store => {
    const list = store.pets.list({ status, limit: Math.min(wanted, pageLimitMax) })
    const { shown, more } = await printPages(list.pages(), wanted, flags, io)
    if (flags.json) return
    if (shown === 0)
      io.err(status === undefined ? 'The pet store holds no animals\n' : `No animal is ${status}\n`)
    if (more) io.err('More animals follow: --all shows them all\n')
  })
}

/** Prints as the pages come, until enough are shown or nobody reads on. */
async function printPages(pages: AsyncIterable<PetPage>, wanted: number, flags: ListFlags, io: Io) {
  const printer = createPetPrinter(flags.json === true, io)
  let shown = 0
  let more = false
  for await (const { pets, next } of pages) {
    const enough = pets.slice(0, wanted - shown)
    shown += enough.length
    more = shown === wanted && (next !== undefined || pets.length > enough.length)
    if (!(await printer.print(enough)) || shown === wanted) break
  }
  await printer.end()
  return { shown, more }
}

async function addPet(name: string, flags: AddFlags, io: Io): Promise<void> {
  const problems: string[] = []
  const deployment = readDeployment(flags, io.env, problems)
  const status = readStatus(flags.status, problems)
  const categoryId = readCategory(flags.category, problems)
  if (categoryId === undefined || problems.length > 0) throw new Misuse(problems)

  await withPetstore(deployment, io, async store => {
    const printer = createPetPrinter(flags.json === true, io)
    await printer.print([await store.pets.create({ name, categoryId, status })])
    await printer.end()
  })
}

async function getPet(text: string, flags: GetFlags, io: Io): Promise<void> {
  const problems: string[] = []
  const deployment = readDeployment(flags, io.env, problems)
  const id = parseInt64(text)
  if (id === undefined) problems.push(invalid('the id', text, int64))
  if (id === undefined || problems.length > 0) throw new Misuse(problems)

  await withPetstore(deployment, io, async store => {
    const printer = createPetPrinter(flags.json === true, io)
    await printer.print([await store.pets.get(id)])
    await printer.end()
  })
}

function readStatus(text: string | undefined, problems: string[]) {
  const status = petStatus.read(text)
  if (text !== undefined && status === undefined) {
    problems.push(invalid('--status', text, petStatus))
  }
  return status
}

function readLimit(text: string | undefined, problems: string[]): number {
  if (text === undefined) return limitDefault
  if (!/^[1-9]\d{0,8}$/.test(text)) {
    problems.push(invalid('--limit', text, { expected: 'an integer from 1 to 999999999' }))
  }
  return Number(text)
}

function readCategory(text: string | undefined, problems: string[]): bigint | undefined {
  const category = text === undefined ? undefined : parseInt64(text)
  if (text === undefined) problems.push(`--category is missing: expected ${int64.expected}`)
  else if (category === undefined) problems.push(invalid('--category', text, int64))
  return category
}
