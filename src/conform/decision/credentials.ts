import { wrongCredential } from '../animals.ts'
import { type Check, rules } from '../check.ts'
import { errorIn, expectHeader, expectStatus } from '../expectation.ts'

const authentication = rules('decision', 'docs/interface.md, Authentication')

const plainChallenge = /^Bearer realm="petstore"$/
const invalidToken = /^Bearer realm="petstore", error="invalid_token", error_description="[^"]+"$/

export const credentialDecisions: readonly Check[] = [
  ...[
    ['without a key', null],
    ['with another scheme', 'Basic Y29uZm9ybTo='],
    ['with a scheme and no key', 'Bearer'],
  ].map(([what, authorization = null]) =>
    authentication.reads(`a request ${what} gets the plain challenge`, async probe => {
      const answer = await probe.send('/pets', { authorization })
      errorIn(answer, 401)
      expectHeader(answer, 'WWW-Authenticate', plainChallenge, 'Bearer realm="petstore"')
    }),
  ),
  authentication.reads('a request with a wrong key is told that the token is invalid', async probe => {
    const answer = await probe.send('/pets', { authorization: wrongCredential() })
    errorIn(answer, 401)
    const expected = 'Bearer realm="petstore", error="invalid_token", error_description="…"'
    expectHeader(answer, 'WWW-Authenticate', invalidToken, expected)
  }),
  authentication.reads('the word Bearer may be in any case', async probe => {
    for (const scheme of ['bearer', 'BEARER']) {
      expectStatus(await probe.send('/pets?limit=1', { authorization: `${scheme} ${probe.key}` }), 200)
    }
  }),
  authentication.reads('two keys in one header are 401', async probe => {
    errorIn(await probe.send('/pets', { authorization: `Bearer ${probe.key} ${probe.key}` }), 401)
  }),
]
