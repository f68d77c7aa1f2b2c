import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort, until } from '../support/process.ts'
import type { ProcessFolder } from './process-folder.ts'

/** After this time without a sign of life Patroni considers a node gone. Its default is 30. */
const ttlSeconds = 20

/** In Patroni's words. */
export type Role = 'leader' | 'sync_standby'

/** As Patroni describes a node. */
type Member = Readonly<Record<'name' | 'role' | 'state', string>> & { readonly timeline?: number }

/** PostgreSQL servers of which Patroni makes one the primary and another one its synchronous standby. */
export class PatroniCluster {
  readonly nodes = ['db1', 'db2', 'db3'].map(name => ({ name, port: freePort(), restPort: freePort() }))
  readonly #folder: ProcessFolder
  readonly #patroni: readonly string[]

  /** `modules` is the folder with Patroni's Python modules. */
  constructor(
    folder: ProcessFolder,
    programs: Readonly<Record<'patroni' | 'etcd' | 'pg_rewind', string>>,
    modules: string,
  ) {
    this.#folder = folder
    this.#patroni = ['env', `PYTHONPATH=${modules}`, programs.patroni]
    const [client, peer] = [freePort(), freePort()].map(port => `http://127.0.0.1:${port}`)
    const urls = [`--listen-client-urls=${client}`, `--advertise-client-urls=${client}`, `--listen-peer-urls=${peer}`]
    folder.start('etcd', programs.etcd, '--data-dir=data', ...urls)
    for (const node of this.nodes) {
      const configuration = configurationOf(node, `${client}`, dirname(programs.pg_rewind))
      writeFileSync(join(folder.folder(node.name), 'patroni.yml'), JSON.stringify(configuration))
      this.start(node.name)
    }
  }

  /** Starts Patroni on a node, and Patroni starts PostgreSQL. */
  start(name: string): void {
    this.#folder.start(name, ...this.#patroni, 'patroni.yml')
  }

  /** What the first node that answers says about all. */
  async #members(): Promise<readonly Member[]> {
    const asked = this.nodes.map(async ({ restPort }) => {
      const response = await fetch(`http://127.0.0.1:${restPort}/cluster`, { signal: AbortSignal.timeout(1_000) })
      return ((await response.json()) as { members: Member[] }).members
    })
    return await Promise.any(asked).catch(() => [])
  }

  /** Waits until every node is part of the cluster, and gives the names of the two that have a role. */
  async complete(): Promise<Readonly<Record<Role, string>>> {
    const probe = async () => {
      const members = await this.#members()
      const isUp = ({ state, timeline }: Member) =>
        /^(running|streaming)$/.test(state) && timeline === members[0]?.timeline
      const [leader, sync_standby] = ['leader', 'sync_standby'].map(
        wanted => members.find(({ role }) => role === wanted)?.name,
      )
      const isComplete = members.length === this.nodes.length && members.every(isUp)
      return isComplete && leader && sync_standby ? { leader, sync_standby } : undefined
    }
    return await until('all nodes', probe, 60_000).catch(error => {
      const logs = this.nodes.map(({ name }) => `${name}: ${this.#folder.log(name)}`)
      throw new Error([error.message, ...logs].join('\n'))
    })
  }

  /** Waits until another node has the role of this one. */
  async replaces(lost: string, role: Role): Promise<void> {
    const isOther = (member: Member) => member.role === role && member.name !== lost
    await until(`another ${role}`, async () => (await this.#members()).some(isOther) || undefined, 60_000)
  }

  async switchover(primary: string): Promise<void> {
    const { restPort } = this.nodes.find(({ name }) => name === primary) ?? {}
    const request = { method: 'POST', body: JSON.stringify({ leader: primary }) }
    const response = await fetch(`http://127.0.0.1:${restPort}/switchover`, request)
    if (!response.ok) throw new Error(`Patroni refuses the switchover: ${await response.text()}`)
  }
}

/** Patroni's configuration as JSON, which is valid YAML. */
function configurationOf({ name, port, restPort }: PatroniCluster['nodes'][number], etcd: string, programs: string) {
  const [address, restAddress] = [port, restPort].map(each => `127.0.0.1:${each}`)
  return {
    scope: 'pets',
    name,
    restapi: { listen: restAddress, connect_address: restAddress },
    etcd3: { url: etcd },
    bootstrap: {
      dcs: {
        ttl: ttlSeconds,
        loop_wait: 2,
        retry_timeout: 5,
        synchronous_mode: true,
        postgresql: { use_pg_rewind: true },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
    },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: 'data',
      bin_dir: programs,
      pgpass: 'pgpass',
      authentication: { superuser: { username: 'postgres' }, replication: { username: 'postgres' } },
      parameters: { unix_socket_directories: '' },
      pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
    },
  }
}
