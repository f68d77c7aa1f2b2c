import { describe, expect, test } from 'bun:test'
import { Probe } from '../../src/conform/check.ts'
import { checks, conform } from '../../src/conform/run.ts'
import { startWrongServer } from '../support/wrong-server.ts'
import { wrongContract } from './wrong-contract.ts'
import { wrongDecisions } from './wrong-decisions.ts'

const namesOf = (rule: 'contract' | 'decision') => checks.filter(check => check.rule === rule).map(({ name }) => name)

describe('a server that follows the interface but not our decisions', () => {
  test('passes every check of the contract', async () => {
    using server = startWrongServer()
    const target = { baseUrl: server.url, key: server.key, readOnly: false }
    const results = await conform(target, { strict: false })
    expect(results.map(({ check, finding }) => [check.name, finding])).toEqual(
      namesOf('contract').map(name => [name, { outcome: 'passed' }]),
    )
  })

  test('receives only GET and HEAD from a run that only reads', async () => {
    using server = startWrongServer()
    const target = { baseUrl: server.url, key: server.key, readOnly: true }
    const results = await conform(target, { strict: true })
    expect(new Set(server.methods)).toEqual(new Set(['GET', 'HEAD']))
    const contract = results.filter(({ check }) => check.rule === 'contract')
    expect(contract.map(({ check, finding }) => [check.name, finding.outcome])).toEqual(
      contract.map(({ check }) => [check.name, check.writes ? 'skipped' : 'passed']),
    )
  })
})

describe('a broken rule fails its check', () => {
  const rows = [...wrongContract, ...wrongDecisions]

  test('and every check has one such test', () => {
    for (const { name } of checks)
      expect([name, rows.filter(([part]) => name.includes(part)).length]).toEqual([name, 1])
    expect(rows.length).toBe(checks.length)
  })

  test.each(rows)('%s', async (part, found, wrongness = {}) => {
    using server = startWrongServer(wrongness)
    const probe = new Probe({ baseUrl: server.url, key: server.key, readOnly: false })
    const finding = await checks.find(({ name }) => name.includes(part))?.run(probe)
    expect(finding).toEqual({
      outcome: 'failed',
      expected: expect.stringMatching(/./),
      found: expect.stringContaining(found),
    })
  })
})
