const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000, y: 365 * 86_400_000 } as const

export const expiryForm = 'a time from now such as 12h, 90d, 4w or 1y, or a date such as 2030-01-31'

/** When a key ends; undefined where the text is none of the forms, or lies in the past. */
export function readExpiry(text: string, now: Date): Date | undefined {
  const span = /^([1-9]\d{0,4})([mhdwy])$/.exec(text)
  if (span) return new Date(now.getTime() + Number(span[1]) * unitMs[span[2] as keyof typeof unitMs])
  if (!/^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?Z)?$/.test(text)) return undefined
  const date = new Date(text)
  // Date turns 31 February into 3 March: only a date that stays itself is one.
  if (Number.isNaN(date.getTime()) || !date.toISOString().startsWith(text.slice(0, 10))) return undefined
  return date > now ? date : undefined
}
