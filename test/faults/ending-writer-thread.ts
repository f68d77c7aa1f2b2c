// Preloaded by a server, and by its threads before their own module: the name of an animal ends the writer thread.

if (Bun.isMainThread) {
  const { Worker: Thread } = globalThis
  globalThis.Worker = class extends Thread {
    constructor(module: string | URL, options?: WorkerOptions) {
      super(module, { ...options, preload: import.meta.path })
    }
  }
} else {
  addEventListener('message', ({ data }) => {
    // The thread commits in the listener that comes next, but cannot reply any more.
    if (Bun.inspect(data, { depth: 9 }).includes('End the thread')) setTimeout(() => process.exit(1))
  })
}
