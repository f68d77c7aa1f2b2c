// The commands correct and remove.

import { SetupError } from '../errors.ts'
import { oneOfText, show } from '../field.ts'
import { parseInt64 } from '../int64.ts'
import { petToJson } from '../json.ts'
import { petName, petStatus } from '../pet.ts'
import { argument, command, int64Text, switchOption, withoutUser } from './arguments.ts'
import { awaitOutcome, runInterruptible, unlessAborted } from './interrupt.ts'
import { animals, announceIfSlow, confirmationProblems, isConfirmed, petTable, visible } from './output.ts'
import { storeOptions, withStores } from './settings.ts'

const optional = { default: 'unchanged', optional: true } as const
const effect = 'Servers show the change in their next response; replicas show it after they have received it.'
const idsMax = 100

export const correctCommand = command({
  name: 'correct',
  summary: 'Correct the name, the category or the status of an animal, while the server runs',
  options: {
    id: { ...argument('<id>', "the animal's id"), ...int64Text },
    name: { flag: '--name, -n <name>', help: "The animal's name", ...petName, ...optional },
    categoryId: { flag: '--category, -c <number>', help: 'A 64-bit integer', ...int64Text, ...optional },
    status: { flag: '--status, -s <status>', help: petStatus.expected, ...petStatus, ...optional },
    noStatus: switchOption('--no-status', 'Remove the status'),
    json: switchOption('--json', 'Print one line of JSON: {"before":{...},"after":{...}}'),
    ...storeOptions,
  },
  details: `Prints the animal before and after.\n${effect}`,
  examples: ['petstore correct 7 --status sold', 'petstore correct 7 --name Rex --category 3 --no-status'],
  check(_, isGiven) {
    if (isGiven('status') && isGiven('noStatus')) return ['--status contradicts --no-status: remove one of them']
    const isAnyGiven = (['name', 'categoryId', 'status', 'noStatus'] as const).some(isGiven)
    return isAnyGiven ? [] : ['Nothing to correct: expected --name, --category, --status or --no-status']
  },
  async run({ id, name, categoryId, status, noStatus, json, ...store }, io) {
    const outcomes = {
      ifAborted: 'nothing was corrected',
      ifUnknown: `animal ${id} may be corrected; run the command again`,
    }
    const correction = { name, categoryId, status: noStatus ? null : status }
    const { corrected, location } = await runInterruptible(io, outcomes, catchSignals =>
      withStores({ ...store, create: false }, io, async ({ transfer, location }) => {
        const signal = catchSignals()
        const change = awaitOutcome(transfer.correct(id, correction, signal), signal)
        return { corrected: await announceIfSlow(change, io), location }
      }),
    )
    if (!corrected) throw new SetupError(`No animal has id ${id}: nothing was corrected`)
    const { before, after } = corrected
    io.err(`Corrected animal ${id} in ${location}, before and after:\n`)
    const line = `{"before":${petToJson(before)},"after":${petToJson(after)}}`
    await io.out(json ? `${visible(line)}\n` : petTable([before, after], 1))
  },
})

export const removeCommand = command({
  name: 'remove',
  summary: 'Remove animals for good, while the server runs: all of them, or none',
  options: {
    ids: {
      ...argument('<id>...', `the ids of 1 to ${idsMax} animals`),
      read(text) {
        const ids = [...new Set(text.split(' ').map(parseInt64))]
        return ids.length <= idsMax && ids.every(id => id !== undefined) ? ids : undefined
      },
      problem(text) {
        const wrong = text.split(' ').find(id => parseInt64(id) === undefined)
        if (wrong === undefined) return `has too many ids: expected at most ${idsMax}`
        return `is ${show(withoutUser(wrong))}: expected ${int64Text.expected}`
      },
    },
    yes: switchOption('--yes, -y', 'Skip the question; needed without a terminal'),
    ...storeOptions,
  },
  details: `Shows the animals and asks first. Their ids are not assigned again.\n${effect}`,
  examples: ['petstore remove 7', 'petstore remove --yes 7 8 12'],
  check: ({ yes }) => confirmationProblems(yes),
  async run({ ids, yes, ...store }, io) {
    const outcomes = { ifAborted: 'nothing was removed', ifUnknown: 'either all of them were removed or none' }
    const refuse = (missing: readonly bigint[]) => {
      if (missing.length === 0) return
      throw new SetupError(`No animal has id ${oneOfText(missing.map(String))}: nothing was removed`)
    }
    await runInterruptible(io, outcomes, catchSignals =>
      withStores({ ...store, create: false }, io, async ({ pets, transfer, location }) => {
        const signal = catchSignals()
        const found = await announceIfSlow(Promise.all(ids.map(id => pets.get(id))), io)
        refuse(ids.filter((_, index) => !found[index]))
        const shown = found.filter(pet => pet !== undefined)
        await io.err(petTable(shown, 2))
        const question = `Remove ${animals(ids.length)} from ${location} for good?`
        if (!yes && !(await unlessAborted(isConfirmed(question, io), signal)))
          throw new SetupError('Nothing was removed: answer y, or use --yes')
        refuse(await announceIfSlow(awaitOutcome(transfer.remove(ids, signal), signal), io))
        io.err(`Removed ${animals(ids.length)} from ${location}\n`)
      }),
    )
  },
})
