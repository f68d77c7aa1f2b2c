interface IpAddress {
  /** As written in the log: an IPv4-mapped IPv6 address as IPv4, any other IPv6 address in its shortest form. */
  readonly text: string
  /** 128 binary digits; IPv4 as an IPv4-mapped IPv6 address. */
  readonly bits: string
}

const mappedPrefix = '0'.repeat(80) + '1'.repeat(16)

/** The client's address: the peer's, or if the peer is a trusted proxy, the last untrusted one in X-Forwarded-For. */
export function clientAddress(
  peer: string,
  trustedProxies: readonly string[],
  forwardedFor: () => string | null,
): string {
  if (trustedProxies.length === 0) return peer.replace(/^::ffff:(?=.*\.)/, '')
  const isTrusted = ({ bits }: IpAddress) => trustedProxies.some(prefix => bits.startsWith(prefix))
  let client = knownAddress(peer)
  if (!client) return peer
  if (!isTrusted(client)) return client.text
  // Each proxy appends the address that it sees, so only entries to the right of an untrusted one are reliable.
  for (const entry of forwardedFor()?.split(',').reverse() ?? []) {
    const address = knownAddress(entry.trim())
    if (!address) break
    client = address
    if (!isTrusted(client)) break
  }
  return client.text
}

/** The binary digits that all addresses of a range begin with. Undefined unless it is an IP address or a CIDR range. */
export function readAddressRange(text: string): string | undefined {
  const [, address = '', length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const { bits } = readAddress(address) ?? {}
  const prefixBits = Number(length ?? 128) + (length !== undefined && !address.includes(':') ? mappedPrefix.length : 0)
  return bits !== undefined && prefixBits <= 128 ? bits.slice(0, prefixBits) : undefined
}

/** Reading an address costs microseconds. When this many are remembered, all are forgotten. */
const knownMax = 256
const known = new Map<string, IpAddress>()

function knownAddress(text: string): IpAddress | undefined {
  const remembered = known.get(text)
  if (remembered) return remembered
  const address = readAddress(text)
  if (known.size >= knownMax) known.clear()
  if (address) known.set(text, address)
  return address
}

const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const ipv4 = new RegExp(`^${octet}(?:\\.${octet}){3}$`)

function readAddress(text: string): IpAddress | undefined {
  if (ipv4.test(text)) return { text, bits: mappedPrefix + digits(text.split('.'), 10, 8) }
  // URL reads every form of an IPv6 address, and writes the shortest one.
  const host =
    /^[\da-f:.]{2,45}$/i.test(text) && text.includes(':') ? URL.parse(`http://[${text}]`)?.hostname : undefined
  if (host === undefined) return undefined
  const short = host.slice(1, -1)
  const [head = [], tail = []] = short.split('::').map(side => side.split(':').filter(group => group !== ''))
  const zeros = Array<string>(8 - head.length - tail.length).fill('0')
  const bits = digits([...head, ...zeros, ...tail], 16, 16)
  return { text: bits.startsWith(mappedPrefix) ? ipv4Text(bits) : short, bits }
}

/** The binary digits of numbers, each with the same width. */
function digits(numbers: readonly string[], base: number, width: number): string {
  return numbers.map(number => Number.parseInt(number, base).toString(2).padStart(width, '0')).join('')
}

function ipv4Text(bits: string): string {
  const octets = bits.slice(mappedPrefix.length).match(/.{8}/g) ?? []
  return octets.map(octet => Number.parseInt(octet, 2)).join('.')
}
