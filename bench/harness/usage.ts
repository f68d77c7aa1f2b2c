import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** What a server has used since it began, with all its threads and the processes that it started. */
export interface Usage {
  readonly cpuMs: number
  readonly peakBytes: number
}

/** Linux counts CPU time in hundredths of a second, whatever the kernel's own clock does. */
const tickMs = 10

/** Undefined where the system has no /proc. */
export function usageOf(pid: number): Usage | undefined {
  if (!existsSync(`/proc/${pid}/stat`)) return undefined
  const all = [pid, ...descendants(pid)].map(usageOfOne)
  return {
    cpuMs: all.reduce((sum, each) => sum + each.cpuMs, 0),
    peakBytes: all.reduce((sum, each) => sum + each.peakBytes, 0),
  }
}

function usageOfOne(pid: number): Usage {
  // The program's name stands in parentheses and may hold spaces; the fields are counted from behind it.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  const [userTicks, systemTicks] = [Number(fields[11]), Number(fields[12])]
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const peakKb = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0)
  return { cpuMs: (userTicks + systemTicks) * tickMs, peakBytes: peakKb * 1024 }
}

function descendants(pid: number): readonly number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap(task =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  )
  return [...children, ...children.flatMap(descendants)]
}
