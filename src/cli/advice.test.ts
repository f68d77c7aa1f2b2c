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
  ['EAI_AGAIN', 'no address is known for this host (EAI_AGAIN); '],
  ['EPIPE', 'the server closed the connection (EPIPE); if it uses TLS, the address needs https://'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another host name (ERR_TLS_CERT_ALTNAME_INVALID); '],
  ['CERT_HAS_EXPIRED', 'its certificate has expired (CERT_HAS_EXPIRED); '],
  ['UNABLE_TO_GET_ISSUER_CERT', 'its certificate is not trusted (UNABLE_TO_GET_ISSUER_CERT); '],
])('%s means: %s', (code, problem) => {
  expect(connectionProblem('https://a', { code }, 'petstore')?.message).toStartWith(
    `Cannot reach https://a: ${problem}`,
  )
})

test('another error stays as it is', () => {
  const error = Object.assign(new Error('a bug'), { code: 'XENOENT' })
  expect(explain('Cannot read it', error, [[/^ENOENT$/, 'it does not exist']])).toBe(error)
  expect(connectionProblem('https://a', error, 'petstore')).toBeUndefined()
})
