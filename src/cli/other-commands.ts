import type { Command } from 'commander'
import { backUpStore } from './backup.ts'
import { addSetting, command, fileName } from './command.ts'
import { addConformCommand } from './conform.ts'
import { addExportCommand } from './export.ts'
import { addImportCommand } from './import.ts'
import type { Io } from './io.ts'
import { type CreateKeyOptions, createKey, listKeys, revokeKey } from './keys.ts'
import { addPetsCommands } from './pets.ts'
import { type Flags, settings } from './settings.ts'

/** Every command but `serve`. */
export function addOtherCommands(program: Command, io: Io, ended: (code: number) => void): void {
  const keys = command(program, 'keys', 'make, list and revoke API keys')
  const create = command(
    keys,
    'create',
    'make a key and print it alone on stdout; it is shown only this once',
  )
    .option('--name <name>', 'what people call it, in keys list (required)')
    .option('--expires <when>', '90d, 12h, 4w, 1y from now, or a date such as 2030-01-31 (default: never)')
    .option(
      '--permission <permission>',
      'read-write, read-only (list and fetch), or metrics (/metrics and nothing else) (default: read-write)',
    )
    .option('--read-only', 'the same as --permission read-only')
  addSetting(create, settings.databaseUrl).action(async (options: CreateKeyOptions & Flags) =>
    createKey(options, options, io),
  )
  const list = command(keys, 'list', 'show all keys: by first characters, never whole').option(
    '--json',
    'for programs: a JSON array',
  )
  addSetting(list, settings.databaseUrl).action(async (options: { json?: boolean }) =>
    listKeys(options, options as Flags, io),
  )
  const revoke = command(keys, 'revoke', 'end a key; running servers refuse it within 5 seconds').argument(
    '<which>',
    "the key's name, its first characters (as keys list shows them), or the whole key",
  )
  addSetting(revoke, settings.databaseUrl).action(async (which: string, flags: Flags) =>
    revokeKey(which, flags, io),
  )

  const backup = command(
    program,
    'backup',
    'copy the running store into a new file, and check the copy',
  ).argument('<file>', 'where to; a file that is there already is not overwritten', fileName)
  addSetting(backup, settings.databaseUrl).action(async (file: string, flags: Flags) =>
    backUpStore(file, flags, io),
  )

  addExportCommand(program, io)
  addImportCommand(program, io)
  addPetsCommands(program, io)
  addConformCommand(program, io, ended)
}
