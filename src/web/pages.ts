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

const alone = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self'",
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
}

/** What a browser is shown, by its path: the catalogue at `/`, the reference at `/docs`. */
export function createPages(): Pages {
  return new Map([...catalogue(), ...reference()])
}

function catalogue(): Pages {
  const folder = new URL('catalogue/', import.meta.url)
  const headers = pageHeaders({ ...alone, 'require-trusted-types-for': "'script'" })
  const pages = readdirSync(folder).map(name => [`/${name}`, page(name, folder, headers)] as const)
  return new Map(pages.map(([path, asset]) => [path === '/index.html' ? '/' : path, asset]))
}

function reference(): Pages {
  const folder = new URL('docs/', import.meta.url)
  // Wherever npm put it: beside this package, or inside of it.
  const swaggerUi = import.meta.resolve('swagger-ui-dist/package.json')
  // The style sheet of Swagger UI holds its icons as data.
  const headers = pageHeaders({ ...alone, 'img-src': "'self' data:" })
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
  if (type === undefined) throw new Error(`Cannot serve ${name}: no media type is known for it`)
  const file = new URL(name, folder)
  if (!existsSync(file)) {
    throw new SetupError(`The installation is not complete: ${file.pathname} is missing; install it again`)
  }
  // Begun now, so that pages and program are of one version, and not awaited, so that the start is short.
  const bytes = Bun.file(file).bytes()
  const read = () => bytes.catch(() => Bun.file(file).bytes())
  bytes.catch(() => {})
  return { type, read, headers }
}
