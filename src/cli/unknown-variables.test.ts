import { expect, test } from 'bun:test'
import { settings } from './settings.ts'
import { unknownVariables } from './unknown-variables.ts'

const lists = 'petstore serve --help lists the variables'

test.each([
  ['PETSTORE_LOGLEVEL=warn', 'did you mean PETSTORE_LOG_LEVEL?'],
  ['PETSTORE_PORT=9100', 'did you mean PORT?'],
  ['PETSTORE_ULR=http://a', 'did you mean PETSTORE_URL?'],
  ['PETSTORE_FOO=x', lists],
  ['PETSTORE_DATABASE_HOST=x', lists],
  ['PETSTORE_DB_PORT=5432', lists],
])('the unknown variable %s gets a warning: %s', (variable, advice) => {
  const [name = '', value] = variable.split('=')
  expect(unknownVariables({ [name]: value }, 'petstore')).toEqual([`Unknown variable ${name}: ${advice}`])
})

test.each([
  ...['PETSTORE_SERVICE_HOST=10.0.0.1', 'PETSTORE_SERVICE_PORT_HTTP=80', 'PETSTORE_PORT_80_TCP_ADDR=10.0.0.1'],
  ...['PETSTORE_DB_SERVICE_HOST=10.0.0.2', 'PETSTORE_DB_PORT=tcp://10.0.0.2:5432'],
  ...['PETSTORE_PROGRAM=bin/petstore', 'PETSTORE_TEST_CRASH_ROUNDS=9', 'PETSTORE_LOGLEVEL=', 'MY_PETSTORE_KEY=x'],
  ...[...Object.values(settings).map(({ variable }) => variable), 'PETSTORE_URL'].map(name => `${name}=x`),
])('%s gets none', variable => {
  const [name = '', value] = variable.split('=')
  expect(unknownVariables({ [name]: value }, 'petstore')).toEqual([])
})
