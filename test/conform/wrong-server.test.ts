import { describe, expect, test } from 'bun:test'
import { createProbe } from '../../src/conform/probe.ts'
import { checks, conform } from '../../src/conform/run.ts'
import { startWrongServer } from '../support/wrong-server.ts'
import { wrongContract } from './wrong-contract.ts'
import { wrongDecisions } from './wrong-decisions.ts'

const namesOf = (rule: 'contract' | 'decision') =>
  checks.filter(check => check.rule === rule).map(({ name }) => name)

describe('a server that knows only the interface', () => {
  test('passes every check of the contract', async () => {
    using server = startWrongServer()
    const target = { baseUrl: server.url, key: server.key, readOnly: false }
    const results = await conform(target, { strict: false })
    expect(results.map(({ check, finding }) => [check.name, finding])).toEqual(
      namesOf('contract').map(name => [name, { outcome: 'passed' }]),
    )
  })

  test('gets nothing but GET and HEAD from a run that only reads', async () => {
    using server = startWrongServer()
    const target = { baseUrl: server.url, key: server.key, readOnly: true }
    const results = await conform(target, { strict: true })
    expect(new Set(server.methods)).toEqual(new Set(['GET', 'HEAD']))
    for (const { check, finding } of results) {
      if (check.writes) expect(finding.outcome).toBe('skipped')
      else if (check.rule === 'contract')
        expect([check.name, finding]).toEqual([check.name, { outcome: 'passed' }])
    }
  })
})

describe('every check fails where its rule is broken', () => {
  test('and none is left out', () => {
    expect(wrongContract.map(([name]) => name).toSorted()).toEqual(namesOf('contract').toSorted())
    expect(wrongDecisions.map(([name]) => name).toSorted()).toEqual(namesOf('decision').toSorted())
    expect(new Set(checks.map(({ name }) => name)).size).toBe(checks.length)
  })

  test.each([...wrongContract, ...wrongDecisions])('%s', async (name, found, wrongness) => {
    using server = startWrongServer(wrongness)
    const probe = createProbe({ baseUrl: server.url, key: server.key, readOnly: false })
    const finding = await checks.find(check => check.name === name)?.run(probe)
    expect(finding).toEqual({
      outcome: 'failed',
      expected: expect.stringMatching(/./),
      found: expect.stringContaining(found),
    })
  })
})
