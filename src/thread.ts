/** A thread that lived shorter than this may end again soon: the next one starts later. */
const shortLifeMs = 10_000
const firstPauseMs = 100
const pauseMsMax = 5_000

interface ThreadParts<Reply> {
  readonly module: URL
  /** For messages, such as `writer thread`. */
  readonly name: string
  /** Sends the first messages to a thread that has just started. */
  onStart(): void
  onMessage(message: Reply): void
  /** The thread has ended by itself. */
  onEnd?(): void
  onError(message: string): void
}

/** Runs a module in a thread, and starts it again whenever it ends by itself: at once, then with growing pauses. */
export class KeptThread<Request, Reply> {
  readonly #parts: ThreadParts<Reply>
  #worker: Worker | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #startedMs = 0
  #pauseMs = 0

  constructor(parts: ThreadParts<Reply>) {
    this.#parts = parts
  }

  get isRunning(): boolean {
    return this.#worker !== undefined
  }

  start(): void {
    const { module, name, onStart, onMessage, onError } = this.#parts
    // A small heap that is collected often saves 13 MB and costs no measurable time.
    const worker = new Worker(module, { smol: true })
    worker.onmessage = ({ data }: MessageEvent<Reply>) => onMessage(data)
    worker.onerror = ({ message }) => onError(`The ${name} failed: ${firstErrorLine(message)}`)
    worker.addEventListener('close', () => this.#ended(worker))
    this.#worker = worker
    this.#startedMs = performance.now()
    onStart()
  }

  /** Does nothing if the thread is not running. */
  post(message: Request, transfer: MessagePort[] = []): void {
    this.#worker?.postMessage(message, transfer)
  }

  /** Ends the thread for good. */
  stop(): void {
    clearTimeout(this.#timer)
    const worker = this.#worker
    this.#worker = undefined
    worker?.terminate()
  }

  #ended(worker: Worker): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    const { name, onEnd, onError } = this.#parts
    if (performance.now() - this.#startedMs >= shortLifeMs) this.#pauseMs = 0
    onError(`The ${name} ended: starting another one${this.#pauseMs > 0 ? ` in ${this.#pauseMs} ms` : ''}`)
    this.#timer = setTimeout(() => this.start(), this.#pauseMs).unref()
    this.#pauseMs = Math.min(Math.max(2 * this.#pauseMs, firstPauseMs), pauseMsMax)
    onEnd?.()
  }
}

/** Bun formats an error with the lines of code around it. */
function firstErrorLine(formatted: string): string {
  return /^\w*error: .*$/im.exec(formatted)?.[0] ?? formatted
}
