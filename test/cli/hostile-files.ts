import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const evil = './evil.ts'
const compilerOptions = {
  baseUrl: '.',
  paths: Object.fromEntries(['*', '/*', './*', '../*', 'bun', 'node:fs'].map(pattern => [pattern, [evil]])),
}
const variables = `HOST=192.0.2.1\nPETSTORE_API_KEY=short\nDATABASE_URL=sqlite:elsewhere.db\nBUN_OPTIONS=--preload=${evil}\n`
const preload = `preload = ["${evil}"]\n[run]\npreload = ["${evil}"]\n`

/** Every kind of file that the runtime looks for in the working folder or above it. Each sets variables or runs code. */
const files: Readonly<Record<string, string>> = {
  '.env': variables,
  '.env.production': variables,
  'bunfig.toml': preload,
  'tsconfig.json': JSON.stringify({ compilerOptions }),
  'jsconfig.json': JSON.stringify({ compilerOptions }),
  'package.json': JSON.stringify({ type: 'commonjs', main: evil, exports: evil, browser: { 'node:fs': evil } }),
  'node_modules/bun/index.ts': `import '../../${evil}'\n`,
}

export const hostileNames = Object.keys(files)

/** Plants one of them, and the code that it would run. */
export function addHostileFile(folder: string, name: string): void {
  const file = join(folder, name)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, files[name] ?? '')
  const code = `import { writeFileSync } from 'node:fs'\nwriteFileSync(import.meta.dir + '/evil-ran', '')\n`
  writeFileSync(join(folder, evil), code)
}

export const hasCodeRun = (folder: string) => existsSync(join(folder, 'evil-ran'))
