import { int64Max } from '../../int64.ts'
import { animal } from '../animals.ts'
import { type Check, rules } from '../check.ts'
import { errorIn } from '../expectation.ts'

const creation = rules('contract', 'interface part 4.2, adding an animal')

/** What is no animal; every body of a row is sent by itself. */
const invalid: readonly (readonly [what: string, bodies: readonly string[]])[] = [
  ['an animal without a name', [animal({ name: undefined })]],
  ['an animal without a categoryId', [animal({ categoryId: undefined })]],
  [
    'an animal whose name is no string',
    ['42', 'null', 'true', '["Rex"]', '{}'].map(name => animal({ name })),
  ],
  [
    'an animal whose categoryId is no integer',
    ['"7"', '1.5', 'true', 'null', '[7]'].map(categoryId => animal({ categoryId })),
  ],
  ['an animal whose categoryId is no int64', [animal({ categoryId: String(int64Max + 1n) })]],
  [
    'an animal whose status is another',
    ['"lost"', '"Available"', '""', '7'].map(status => animal({ status })),
  ],
  ['a body that is no object', ['[]', '"Rex"', '7', 'null']],
  ['a body that is no JSON', ['{"name":', 'name=Rex']],
]

export const refusalChecks: readonly Check[] = [
  creation.writes('POST /pets without a body is 400', async probe => {
    errorIn(await probe.post(undefined), 400)
  }),
  ...invalid.map(([what, bodies]) =>
    creation.writes(`POST /pets with ${what} is 400`, async probe => {
      for (const body of bodies) errorIn(await probe.post(body), 400)
    }),
  ),
]
