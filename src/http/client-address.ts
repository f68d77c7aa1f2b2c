import type { BlockList } from 'node:net'

/** Loaded only if there are trusted proxies, because it slows the start. */
const net = () => process.getBuiltinModule('node:net')

export class TrustedProxies {
  readonly #ranges: BlockList | undefined

  /** IP addresses and CIDR ranges. Throws if one is neither. */
  constructor(ranges: readonly string[]) {
    if (ranges.length === 0) return
    this.#ranges = new (net().BlockList)()
    for (const range of ranges) {
      const [, address = '', length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(range) ?? []
      if (!isAddress(address)) throw new TypeError(`${range} is no IP address`)
      if (length === undefined) this.#ranges.addAddress(address, findFamily(address))
      else this.#ranges.addSubnet(address, Number(length), findFamily(address))
    }
  }

  /** The peer's address, or if the peer is a trusted proxy, the last untrusted one in X-Forwarded-For. */
  findClient(peer: string, headers: Pick<Headers, 'get'>): string {
    let client = unmapIPv4(peer)
    if (!this.#isTrusted(client)) return client
    // Each proxy appends the address that it sees, so only entries to the right of an untrusted one are reliable.
    for (const entry of headers.get('x-forwarded-for')?.split(',').reverse() ?? []) {
      const address = unmapIPv4(entry.trim())
      if (!isAddress(address)) break
      client = address
      if (!this.#isTrusted(client)) break
    }
    return client
  }

  #isTrusted(address: string): boolean {
    return this.#ranges !== undefined && isAddress(address) && this.#ranges.check(address, findFamily(address))
  }
}

export function isAddressRange(text: string): boolean {
  try {
    new TrustedProxies([text])
    return true
  } catch {
    return false
  }
}

/** A zone, as in `fe80::1%eth0`, means nothing on another machine. */
const isAddress = (text: string) => !text.includes('%') && net().isIP(text) !== 0
const findFamily = (address: string) => (address.includes(':') ? 'ipv6' : 'ipv4')
/** The IPv4 address that an IPv6 address stands for, such as `::ffff:192.0.2.1`. */
const unmapIPv4 = (address: string) => address.replace(/^::ffff:(?=\d+\.)/i, '')
