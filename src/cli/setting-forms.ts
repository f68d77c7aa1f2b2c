// How the settings are written.
import { type LogLevel, logLevels } from '../log.ts'

export function portOf(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined
}

export function hostOf(text: string): string | undefined {
  const host = text.replace(/^\[(.*)\]$/, '$1')
  return /^[A-Za-z0-9._:-]+$/.test(host) ? host : undefined
}

export function switchOf(text: string): boolean | undefined {
  return text === 'true' ? true : text === 'false' ? false : undefined
}

export function rateLimitOf(text: string): { requests: number; seconds: number } | undefined {
  const [, requests, unit] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? []
  if (unit === undefined) return undefined
  return { requests: Number(requests), seconds: unit === 's' ? 1 : unit === 'm' ? 60 : 3_600 }
}

export const databasePoolMax = 1_000

export function databasePoolOf(text: string): number | undefined {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0
  return count >= 1 && count <= databasePoolMax ? count : undefined
}

export const timeForm = 'a time from 0s to 300s, such as 500ms or 30s'

/** In milliseconds. */
export function timeOf(text: string): number | undefined {
  const [, amount, unit] = /^(\d{1,6})(ms|s)$/.exec(text) ?? []
  const ms = Number(amount) * (unit === 's' ? 1_000 : 1)
  return ms <= 300_000 ? ms : undefined
}

export const baseAddressForm =
  'an http or https address without user, query or fragment, such as https://pets.example.com/v1'

/** Only what RFC 3986 allows, because the address goes into headers. URL.parse would accept more. */
const baseAddress =
  /^https?:\/\/(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d+)?(?:\/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*)?$/i

/** The interface's base addresses end in /v1; it is added if it is missing. */
export function baseAddressOf(text: string): string | undefined {
  const url = baseAddress.test(text) ? URL.parse(text) : null
  if (!url) return undefined
  const address = `${url.origin}${url.pathname}`.replace(/\/+$/, '')
  return address.endsWith('/v1') ? address : `${address}/v1`
}

export const originsForm =
  'origins with commas between them, such as https://shop.example.com,http://localhost:3000'

export function originsOf(text: string): readonly string[] | undefined {
  const origins = text.split(',').map(origin => origin.trim())
  const isOrigin = (origin: string) => /^https?:/.test(origin) && URL.parse(origin)?.origin === origin
  return origins.every(isOrigin) ? origins : undefined
}

export function logLevelOf(text: string): LogLevel | undefined {
  return logLevels.find(level => level === text)
}
