import { closeSync, openSync } from 'node:fs'

/** If a thread ends sooner than this, the next start is delayed. */
const shortLifeMs = 10_000
const firstPauseMs = 100
const pauseMsMax = 30_000
/** A thread opens fewer files than this when it starts. */
const filesToStart = 24
/** Between two checks whether these files can be opened. */
const filesPauseMs = 500

interface ThreadParts<Reply> {
  readonly module: URL
  /** For messages, such as `The writer thread`. */
  readonly name: string
  /** The thread has just started: messages can be posted. */
  onStart?(): void
  onMessage(message: Reply): void
  /** The thread has ended by itself. The message says why, if that is known, and when the next one starts. */
  onEnd(message: string): void
}

/** Runs a module in a thread, and starts it again whenever it ends by itself: at once, then with growing pauses. */
export class RestartingThread<Request, Reply> {
  readonly #parts: ThreadParts<Reply>
  #worker: Worker | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #startedMs = 0
  #pauseMs = 0
  #failure: string | undefined

  constructor(parts: ThreadParts<Reply>) {
    this.#parts = parts
  }

  get isRunning(): boolean {
    return this.#worker !== undefined
  }

  start(): void {
    const { module, onStart, onMessage } = this.#parts
    // A small heap that is collected often saves 13 MB and costs no measurable time.
    const worker = new Worker(module, { smol: true })
    worker.onmessage = ({ data }: MessageEvent<Reply>) => onMessage(data)
    worker.onerror = ({ message }) => {
      this.#failure = firstErrorLine(message)
    }
    worker.addEventListener('close', () => this.#ended(worker))
    this.#worker = worker
    this.#startedMs = performance.now()
    onStart?.()
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
    if (performance.now() - this.#startedMs >= shortLifeMs) this.#pauseMs = 0
    const pause = this.#pauseMs > 0 ? ` in ${this.#pauseMs} ms` : ''
    const cause = this.#failure === undefined ? '' : ` (${this.#failure})`
    this.#failure = undefined
    this.#restartAfter(this.#pauseMs)
    this.#pauseMs = Math.min(Math.max(2 * this.#pauseMs, firstPauseMs), pauseMsMax)
    this.#parts.onEnd(`${this.#parts.name} ended${cause}; restarting${pause}`)
  }

  #restartAfter(pauseMs: number): void {
    const restart = () => (canOpenFiles() ? this.start() : this.#restartAfter(filesPauseMs))
    this.#timer = setTimeout(restart, pauseMs).unref()
  }
}

/** Bun ends the whole process if a new thread cannot open its files. */
function canOpenFiles(): boolean {
  const files: number[] = []
  try {
    while (files.length < filesToStart) files.push(openSync('/dev/null', 'r'))
    return true
  } catch {
    return false
  } finally {
    for (const file of files) closeSync(file)
  }
}

/** Bun formats an error with the lines of code around it. */
function firstErrorLine(formatted: string): string {
  return /^(?:\w*error|[A-Z]\w*): .*$/im.exec(formatted)?.[0] ?? formatted
}
