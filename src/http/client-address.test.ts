import { expect, test } from 'bun:test'
import { isAddressRange, TrustedProxies } from './client-address.ts'

const client = (peer: string, trusted: string, header: string | null) =>
  new TrustedProxies(trusted.split(',').filter(Boolean)).findClient(peer, {
    get: name => (name === 'x-forwarded-for' ? header : null),
  })

test.each<[string, string, string | null, string]>([
  // Without trusted proxies, or from another peer, the header is ignored.
  ['192.0.2.1', '', '203.0.113.7', '192.0.2.1'],
  ['::ffff:192.0.2.1', '', '203.0.113.7', '192.0.2.1'],
  ['11.0.0.1', '10.0.0.0/8', '203.0.113.7', '11.0.0.1'],
  ['fe80::1%eth0', 'fe80::/16', '203.0.113.7', 'fe80::1%eth0'],
  // A trusted peer, as an address or in a range, IPv4 or IPv6.
  ['10.0.0.11', '10.0.0.1', '203.0.113.7', '10.0.0.11'],
  ['10.255.3.4', '192.0.2.1,10.0.0.0/8', '203.0.113.7', '203.0.113.7'],
  ['::ffff:10.0.0.1', '10.0.0.1', '203.0.113.7', '203.0.113.7'],
  ['10.0.0.1', '::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
  ['fd00:0:0:1::5', 'fd00::/16', '2001:DB8:0:0:0:0:0:1', '2001:DB8:0:0:0:0:0:1'],
  ['::1', '::1', '::FFFF:203.0.113.7', '203.0.113.7'],
  ['::1', '::1', '::ffff:cb00:7107', '::ffff:cb00:7107'],
  // Every address: of IPv4 alone, or of both.
  ['1.2.3.4', '0.0.0.0/0', '203.0.113.7', '203.0.113.7'],
  ['2001:db8::1', '0.0.0.0/0', '203.0.113.7', '2001:db8::1'],
  ['1.2.3.4', '::/0', '203.0.113.7', '203.0.113.7'],
  // From the right, up to the first address that is not a trusted proxy.
  ['10.0.0.1', '10.0.0.0/8', '198.51.100.1,203.0.113.7 ,\t10.0.0.2', '203.0.113.7'],
  ['10.0.0.1', '10.0.0.0/8', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
  ['10.0.0.1', '10.0.0.0/8', null, '10.0.0.1'],
  // Up to a malformed entry.
  ['10.0.0.1', '10.0.0.0/8', '203.0.113.7, unknown', '10.0.0.1'],
  ['10.0.0.1', '10.0.0.0/8', '203.0.113.7, "x\u001b[31m", 10.0.0.2', '10.0.0.2'],
])('peer %s, trusted proxies %j, X-Forwarded-For %j: %s', (peer, trusted, header, expected) => {
  expect(client(peer, trusted, header)).toBe(expected)
})

test.each([
  ...['256.1.1.1', '01.2.3.4', '1.2.3.4:80', 'localhost', '[::1]', 'fe80::1%eth0', '', '1.2.3.4/33'],
  ...['::/129', '1.2.3.4/', '1.2.3.4/-1', '1.2.3.4/8/8', '/8', '1.2.3.4/255.0.0.0'],
])('%j is no address and no range', text => {
  expect(isAddressRange(text)).toBe(false)
  expect(client('10.0.0.1', '10.0.0.1', text)).toBe('10.0.0.1')
})
