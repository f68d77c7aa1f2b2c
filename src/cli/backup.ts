import { SetupError } from '../errors.ts'
import { writeMsMax } from '../store/commit-queue.ts'
import { isPostgres, sqliteFile } from '../store/open.ts'
import { backUpSqlite } from '../store/sqlite/backup.ts'
import { openSqliteRestore, type Restore } from '../store/sqlite/restore.ts'
import { argument, command, switchOption } from './command.ts'
import { runInterruptible } from './interrupt.ts'
import { writeNewFile } from './new-file.ts'
import type { Io } from './output.ts'
import { settings } from './settings.ts'
import { animals, confirmationProblems, isConfirmed, minute, startProgress } from './terminal.ts'

export const backupCommand = command({
  name: 'backup',
  summary: 'Copy an SQLite store into a new file, while the server runs, and check the copy',
  options: {
    file: argument('file', 'a new file; an existing one is not overwritten'),
    databaseUrl: settings.databaseUrl,
  },
  examples: ['petstore backup pets-2030-01-31.db'],
  check({ databaseUrl = '' }, _, program) {
    if (!isPostgres(databaseUrl)) return []
    return [`Cannot back up PostgreSQL: use pg_dump, or ${program} export for the animals alone`]
  },
  async run({ file, databaseUrl }, io) {
    const ifAborted = `${file} was not created`
    await runInterruptible(io, { ifAborted }, catchSignals => backUpTo(file, databaseUrl, catchSignals(), io))
  },
})

async function backUpTo(file: string, databaseUrl: string, signal: AbortSignal, io: Io): Promise<void> {
  const copy = async (path: string) => {
    using progress = startProgress('Copying the store', io)
    return await backUpSqlite(sqliteFile(databaseUrl), path, progress.update, signal)
  }
  const { result, bytes } = await writeNewFile(file, `Cannot back up to ${file}`, copy)
  io.err(`Copied ${animals(result)} to ${file} (${bytes.toLocaleString('en')} bytes) and checked the copy\n`)
}

const cannotRestorePostgres =
  'Cannot restore PostgreSQL: stop all instances, run pg_restore into an empty database, and set DATABASE_URL to it'

export const restoreCommand = command({
  name: 'restore',
  summary: 'Replace the animals of an SQLite store with those of a backup, while the server runs',
  options: {
    file: argument('file', 'a copy that petstore backup has written'),
    yes: switchOption('yes', 'Skip the question; needed without a terminal', 'y'),
    databaseUrl: settings.databaseUrl,
  },
  details: `All or nothing: animals and idempotency keys come from the backup. API keys of the store stay as
they are, and keys that only the backup has are added. Ids of the store are not assigned again. A
missing store is created. While the store replaces the animals (a million in 3 seconds), reads
continue. A POST waits, and is 503 after ${writeMsMax / 1_000} seconds. The disk needs free space of up to 2.2 times
the size of the backup.`,
  examples: ['petstore restore pets-2030-01-31.db', 'petstore restore --yes pets-2030-01-31.db'],
  check: ({ databaseUrl = '', yes }) => (isPostgres(databaseUrl) ? [cannotRestorePostgres] : confirmationProblems(yes)),
  async run({ file, yes, databaseUrl }, io) {
    io.err(`Checking ${file} and the store\n`)
    using restore = await openSqliteRestore(sqliteFile(databaseUrl), file)
    io.err(summarize(file, restore))
    if (!yes && !(await isConfirmed('Replace the catalogue?', io)))
      throw new SetupError('Nothing was restored: answer y, or use --yes')
    await runInterruptible(io, { ifAborted: 'nothing was restored' }, async catchSignals => {
      using progress = startProgress(`Restoring ${file}`, io)
      await restore.run(progress.update, catchSignals())
    })
    io.err(`Restored ${animals(restore.pets)}\n`)
    if (restore.isBehind) io.err(lostHistory)
  },
})

function summarize(file: string, { location, modifiedAt, pets, petsNow, keysToAdd }: Restore): string {
  const isNew = petsNow === undefined
  const now = isNew ? 'the store will be created' : `${petsNow.toLocaleString('en')} now`
  return `${file}, last modified ${minute(modifiedAt)}, replaces the catalogue of ${location}:
  Animals:  ${pets.toLocaleString('en')} in the backup; ${now}
  API keys: ${keysToAdd.toLocaleString('en')} to add${isNew ? '' : '; those of the store stay as they are'}
Animals added since the backup will be lost, including those added until the restore locks the store.
`
}

const lostHistory = `The store may not know what happened after the backup:
  Keys revoked since then are valid again: revoke them.
  Ids assigned since then may be assigned again.
`
