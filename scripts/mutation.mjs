// `npm run test:mutation -- root|http|sqlite|client [FILE…]`: changes the source in many small ways and reports the changes
// that no test notices. It takes minutes to an hour, so it is not part of `npm test`, and Stryker is downloaded on demand.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const stryker = '@stryker-mutator/core@9.6.1'

/** The files to change; the tests that judge a change, quick ones first; the score to reach, in percent. */
const targets = {
  root: { mutate: ['src/*.ts'], tests: ['src/*.test.ts'], goal: 94 },
  // Nearly all of openapi.ts is text for people.
  http: {
    mutate: ['src/http/*.ts', '!src/http/openapi.ts'],
    tests: ['src/http', 'test/http', 'test/cli/serve test/faults/stopping'],
    goal: 90,
  },
  sqlite: {
    mutate: ['src/store/sqlite/*.ts'],
    tests: [
      'src/store/sqlite test/store/sqlite',
      'test/faults/damage test/faults/writer test/faults/disk',
      'test/cli/backup test/cli/transfer',
    ],
    goal: 85,
  },
  client: { mutate: ['src/client/*.ts'], tests: ['src/client test/client/client.test.ts'], goal: 85 },
}

const [name = 'root', ...files] = process.argv.slice(2)
if (!Object.hasOwn(targets, name)) {
  console.error(`Unknown target ${name}: expected root, http, sqlite or client`)
  process.exit(2)
}
const { mutate, tests, goal } = targets[name]

const config = {
  mutate: [...(files.length > 0 ? files : mutate), '!**/*.test.ts'],
  testRunner: 'command',
  commandRunner: { command: tests.map(paths => `bun --no-env-file test --bail --timeout 60000 ${paths}`).join(' && ') },
  // Stryker would read it with TypeScript's JavaScript API, which version 7 does not have.
  tsconfigFile: 'none',
  // A change may cause an endless loop; a slow machine must not look like one.
  timeoutMS: 15_000,
  reporters: ['clear-text', 'progress', 'html'],
  htmlReporter: { fileName: `coverage/mutation-${name}.html` },
  // Inside the project, so that node_modules is found; ignored by git.
  tempDirName: 'coverage/stryker',
  cleanTempDir: 'always',
  ignorePatterns: ['bench', 'coverage', 'data', 'dist'],
  thresholds: { high: goal, low: goal, break: null },
  allowConsoleColors: process.stdout.isTTY ?? false,
}
const folder = mkdtempSync(join(tmpdir(), 'petstore-mutation-'))
const file = join(folder, 'stryker.config.json')
try {
  writeFileSync(file, JSON.stringify(config))
  const { status } = spawnSync('npx', ['--yes', stryker, 'run', file], { stdio: 'inherit' })
  process.exitCode = status ?? 1
} finally {
  rmSync(folder, { recursive: true })
}
