import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import { SetupError } from '../errors.ts'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const policy = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self'",
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
  'require-trusted-types-for': "'script'",
}

const headers = {
  'Content-Security-Policy': Object.entries(policy)
    .map(([directive, value]) => `${directive} ${value}`)
    .join('; '),
  'Referrer-Policy': 'no-referrer',
}

/** The files of each folder, relative to this file. */
const files = {
  '/': ['favicon.svg', 'site.css', 'site.js'],
  '/catalogue/': ['catalogue.css', 'catalogue.js', 'catalogue-view.js', 'catalogue-wire.js', 'index.html'],
  '/docs/': ['docs.css', 'docs.js', 'docs-request.js', 'index.html'],
}

const indexes = new Map([
  ['/catalogue/index.html', '/'],
  ['/docs/index.html', '/docs'],
])

/** The files by path: the catalogue is at `/`, the reference at `/docs`. */
export function createPages() {
  const paths = Object.entries(files).flatMap(([folder, names]) => names.map(name => folder + name))
  return new Map(paths.map(path => [indexes.get(path) ?? path, pageOf(path)]))
}

function pageOf(path: string) {
  const type = types[extname(path)] ?? ''
  const url = new URL(`.${path}`, import.meta.url)
  if (!existsSync(url)) {
    throw new SetupError(`The installation is incomplete: ${url.pathname} is missing; reinstall it`)
  }
  const file = Bun.file(url)
  // Read at the start, so that an upgrade of the files does not mix versions. The server does not wait for it.
  const bytes = file.bytes()
  bytes.catch(() => {})
  const read = async () => {
    const content = await bytes.catch(() => file.bytes())
    return path.endsWith('.js') ? withoutComments(content) : content
  }
  return { type, read, headers }
}

/** Comments are more than half of each script. */
function withoutComments(script: Uint8Array): Uint8Array {
  const transpiler = new Bun.Transpiler({ loader: 'js', minifyWhitespace: true })
  return new TextEncoder().encode(transpiler.transformSync(new TextDecoder().decode(script)))
}
