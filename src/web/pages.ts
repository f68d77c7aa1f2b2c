import { existsSync, readdirSync } from 'node:fs'
import { extname } from 'node:path'
import { SetupError } from '../errors.ts'

/** A file as the server sends it. */
interface Asset {
  readonly type: string
  readonly headers: Headers
  read(): Promise<Uint8Array>
}

type Pages = ReadonlyMap<string, Asset>
type Headers = Readonly<Record<string, string>>

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const selfOnly = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self'",
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
}

/** The pages by path: the catalogue at `/`, the reference at `/docs`. */
export function createPages(): Pages {
  return new Map([...catalogue(), ...reference()])
}

function catalogue(): Pages {
  const folder = new URL('catalogue/', import.meta.url)
  const headers = pageHeaders({ ...selfOnly, 'require-trusted-types-for': "'script'" })
  const pages = readdirSync(folder).map(name => [`/${name}`, page(name, folder, headers)] as const)
  return new Map(pages.map(([path, asset]) => [path === '/index.html' ? '/' : path, asset]))
}

function reference(): Pages {
  const folder = new URL('docs/', import.meta.url)
  const swaggerUi = import.meta.resolve('swagger-ui-dist/package.json')
  // Swagger UI's style sheet contains its icons as data URLs.
  const headers = pageHeaders({ ...selfOnly, 'img-src': "'self' data:" })
  return new Map([
    ['/docs', page('index.html', folder, headers)],
    ['/docs/docs.css', page('docs.css', folder, headers)],
    ['/docs/docs.js', page('docs.js', folder, headers)],
    ['/docs/swagger-ui.css', page('swagger-ui.css', swaggerUi, headers)],
    ['/docs/swagger-ui-bundle.js', page('swagger-ui-bundle.js', swaggerUi, headers)],
  ])
}

function pageHeaders(policy: Readonly<Record<string, string>>): Headers {
  const directives = Object.entries(policy).map(([name, value]) => `${name} ${value}`)
  return { 'Content-Security-Policy': directives.join('; '), 'Referrer-Policy': 'no-referrer' }
}

function page(name: string, folder: URL | string, headers: Headers): Asset {
  const type = types[extname(name)]
  if (type === undefined) throw new Error(`Cannot serve ${name}: unknown media type`)
  const file = new URL(name, folder)
  if (!existsSync(file)) {
    throw new SetupError(`The installation is incomplete: ${file.pathname} is missing; reinstall it`)
  }
  // Read now, so that pages and program have one version, but not awaited, so that the start is quick.
  const bytes = Bun.file(file).bytes()
  const read = () => bytes.catch(() => Bun.file(file).bytes())
  bytes.catch(() => {})
  return { type, read, headers }
}
