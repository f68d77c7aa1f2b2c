import { expect, test } from 'bun:test'
import { StoreError, StoreUnavailable } from '../errors.ts'
import { connectionProblem, explain, withAdvice } from './advice.ts'

test('one line says what happened and what to do, if there is something to do', () => {
  const full = new StoreError('disk-full', 'Cannot open the store pets.db: the disk is full (SQLITE_FULL)')
  expect(withAdvice(full)).toBe('Cannot open the store pets.db: the disk is full (SQLITE_FULL); free some space')
  const pooler = new StoreUnavailable('PostgreSQL: 26000', { problem: 'pooler' })
  expect(withAdvice(pooler)).toBe('PostgreSQL: 26000; set PETSTORE_DATABASE_POOLER=true')
  expect(withAdvice(new StoreUnavailable('PostgreSQL: 57014'))).toBe('PostgreSQL: 57014')
})

test.each([
  ['ECONNREFUSED', 'nothing answers there (ECONNREFUSED); start it with petstore serve, or check the address'],
  ['ENOTFOUND', 'no address is known for this host (ENOTFOUND); check its name'],
  ['EPROTO', 'the TLS handshake failed (EPROTO); if the server has no TLS, the address needs http://'],
  [
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'its certificate is for another host name (ERR_TLS_CERT_ALTNAME_INVALID); use that name',
  ],
  ['CERT_HAS_EXPIRED', 'its certificate has expired (CERT_HAS_EXPIRED); renew it'],
  [
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'its certificate is not trusted (UNABLE_TO_VERIFY_LEAF_SIGNATURE); set NODE_EXTRA_CA_CERTS to the file of its authority',
  ],
])('%s means: %s', (code, problem) => {
  expect(String(connectionProblem('https://a', { code }))).toBe(`SetupError: Cannot reach https://a: ${problem}`)
})

test('another error stays as it is', () => {
  const error = Object.assign(new Error('a bug'), { code: 'XENOENT' })
  expect(explain('Cannot read it', error, [[/^ENOENT$/, 'it does not exist']])).toBe(error)
  expect(connectionProblem('https://a', error)).toBeUndefined()
})
