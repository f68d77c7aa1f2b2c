// The files of the pages, as the server sends them.

import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import { SetupError } from '../errors.ts'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const policy = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"],
]
const headers = { 'Content-Security-Policy': policy.join('; '), 'Referrer-Policy': 'no-referrer' }

/** The files that a browser loads, by their folder in `src`. */
const files = {
  'client/': ['client.ts', 'errors.ts', 'index.ts', 'json.ts', 'options.ts', 'request.ts'],
  'web/': ['favicon.svg', 'site.css', 'site.ts'],
  'web/catalogue/': ['catalogue.css', 'catalogue.ts', 'index.html'],
  'web/docs/': ['docs.css', 'docs.ts', 'index.html'],
}

const indexes = new Map([
  ['web/catalogue/index.html', '/'],
  ['web/docs/index.html', '/docs'],
])

/** The files by path: the catalogue is at `/`, the reference at `/docs`, and everything else below `/assets/`. */
export function createPages() {
  const paths = Object.entries(files).flatMap(([folder, names]) => names.map(name => folder + name))
  return new Map(paths.map(path => [indexes.get(path) ?? `/assets/${path}`, createPage(path)]))
}

function createPage(path: string) {
  const type = types[extname(path)] ?? ''
  const url = new URL(`../${path}`, import.meta.url)
  if (!existsSync(url)) {
    throw new SetupError(`The installation is incomplete: ${url.pathname} is missing; reinstall it`)
  }
  const file = Bun.file(url)
  // Read at the start, so that an upgrade of the files does not mix versions. The server does not wait for it.
  const bytes = file.bytes()
  bytes.catch(() => {})
  const read = async () => {
    const content = await bytes.catch(() => file.bytes())
    return path.endsWith('.ts') ? transpile(content) : content
  }
  return { type, read, headers }
}

/** A TypeScript module as JavaScript with short names: a tenth less to load. */
function transpile(module: Uint8Array): Uint8Array {
  // Bun's types lack `minify`.
  const transpiler = new Bun.Transpiler({ loader: 'ts', minify: true } as Bun.TranspilerOptions)
  return new TextEncoder().encode(transpiler.transformSync(module))
}
