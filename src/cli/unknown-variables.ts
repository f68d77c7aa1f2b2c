import type { Io } from './output.ts'
import { settings } from './settings.ts'
import { findSimilar } from './similar.ts'

const variablePrefix = 'PETSTORE_'
/** With its value. Set by bin/petstore, tests, or Kubernetes for Services such as `petstore` and `petstore-db`. */
const foreignVariable = /^PETSTORE_(PROGRAM=|TEST_|(\w+_)?(SERVICE_|PORT_\d+_|PORT=(tcp|udp|sctp):))/

/** A warning for each variable that looks like a setting and is none: it is probably mistyped. */
export function unknownVariables(env: Io['env'], program: string): readonly string[] {
  // `pets` reads PETSTORE_URL.
  const known = [...Object.values(settings).map(({ variable }) => variable), 'PETSTORE_URL']
  const isUnknown = (name: string) => name.startsWith(variablePrefix) && !known.includes(name)
  return Object.entries(env).flatMap(([name, value]) => {
    if (!value || !isUnknown(name) || foreignVariable.test(`${name}=${value}`)) return []
    const bare = name.slice(variablePrefix.length)
    const meant = known.includes(bare) ? bare : findSimilar(name, known)
    return `Unknown variable ${name}: ${meant ? `did you mean ${meant}?` : `${program} serve --help lists the variables`}`
  })
}
