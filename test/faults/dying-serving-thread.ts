// Preloaded by a server: a request to /die/exit or /die/throw ends the thread that serves it, unless it is the main thread.
import { App } from '../../src/http/app.ts'

if (Bun.isMainThread) {
  const self = import.meta.url
  globalThis.Worker = class extends Worker {
    constructor(module: string | URL, options?: WorkerOptions) {
      super(String(module).endsWith('/serving.ts') ? self : module, options)
    }
  }
} else {
  const { fetch } = App.prototype
  App.prototype.fetch = function (request, peers) {
    if (request.url.endsWith('/die/exit')) process.exit(1)
    if (!request.url.endsWith('/die/throw')) return fetch.call(this, request, peers)
    setTimeout(() => Promise.reject(new RangeError('out of luck')))
    return Promise.resolve(new Response('dying'))
  }
  await import('../../src/cli/serving.ts')
}
