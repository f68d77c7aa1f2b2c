// Preloaded by a server, and by its threads before their own module: two names of animals end the writer thread.

if (Bun.isMainThread) {
  const { Worker: Thread } = globalThis
  globalThis.Worker = class extends Thread {
    constructor(module: string | URL, options?: WorkerOptions) {
      super(module, { ...options, preload: import.meta.path })
    }
  }
} else {
  addEventListener('message', ({ data }) => {
    const sent = Bun.inspect(data, { depth: 9 })
    if (sent.includes('End before the commit')) process.exit(1)
    // The thread commits in the listener that comes next.
    if (sent.includes('End after the commit')) setTimeout(() => process.exit(1))
  })
}
