import { readFileSync } from 'node:fs'

/** The memory that a process holds, as the system counts it. */
export function residentBytes(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}
