import { expect, test } from 'bun:test'
import { dependencies, engines } from '../package.json' with { type: 'json' }
import lock from '../package-lock.json' with { type: 'json' }

interface LockedPackage {
  readonly resolved?: string
  readonly dev?: boolean
  readonly hasInstallScript?: boolean
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const packages = Object.entries(lock.packages as Readonly<Record<string, LockedPackage>>)

test('the lockfile holds the packages of every platform, so that npm ci works on each', () => {
  const optional = packages.flatMap(([, { optionalDependencies = {} }]) => Object.keys(optionalDependencies))
  const locked = new Set(packages.map(([path]) => path.replace(/^.*node_modules\//, '')))
  expect(optional.filter(name => !locked.has(name))).toEqual([])
  expect(optional.length).toBeGreaterThan(50)
})

test('the lockfile holds no download address', () => {
  expect(packages.filter(([, { resolved }]) => resolved !== undefined)).toEqual([])
})

test('the package needs at least the Bun that it installs', () => {
  expect(engines.bun).toBe(`>=${dependencies.bun}`)
})

test('installing the service runs no install script but that of Bun', () => {
  const scripts = packages.filter(([, { dev, hasInstallScript }]) => hasInstallScript && !dev)
  expect(scripts.map(([path]) => path)).toEqual(['node_modules/bun'])
})
