import { dirname, join } from 'node:path'
import { freePort, until } from '../support/process.ts'
import { extractFromDebian13 } from './debian-13.ts'
import { ProcessFolder } from './process-folder.ts'

/** In Patroni's words. */
export type Role = 'leader' | 'sync_standby'

/** As Patroni describes a node. */
type Member = Readonly<Record<'name' | 'role' | 'state', string>> & { readonly timeline?: number }

/** PostgreSQL servers of which Patroni makes one the primary and another one its synchronous standby. */
export class PatroniCluster extends ProcessFolder {
  readonly nodes = ['db1', 'db2', 'db3'].map(name => ({ name, port: freePort(), restPort: freePort() }))
  #patroni: readonly string[] = []

  async run({ patroni, etcd, pg_rewind }: Readonly<Record<'patroni' | 'etcd' | 'pg_rewind', string>>): Promise<void> {
    // Until 3.0.2, which Debian 12 has, a node that was frozen could take the leader's key from the new primary.
    const newer = this.folder('debian-13')
    await extractFromDebian13('patroni', newer)
    this.#patroni = ['env', `PYTHONPATH=${join(newer, 'usr/lib/python3/dist-packages')}`, patroni, 'patroni.yml']
    const [client, peer] = [freePort(), freePort()].map(port => `http://127.0.0.1:${port}`)
    const urls = [`--listen-client-urls=${client}`, `--advertise-client-urls=${client}`, `--listen-peer-urls=${peer}`]
    this.start('etcd', {}, etcd, '--data-dir=data', ...urls)
    for (const node of this.nodes) {
      const configuration = configurationOf(node, `${client}`, dirname(pg_rewind))
      this.startNode(node.name, { 'patroni.yml': JSON.stringify(configuration) })
    }
  }

  /** Starts Patroni on a node, and Patroni starts PostgreSQL. */
  startNode(name: string, files = {}): void {
    this.start(name, files, ...this.#patroni)
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
    return await until('all nodes', async () => {
      const members = await this.#members()
      const isUp = ({ state, timeline }: Member) =>
        /^(running|streaming)$/.test(state) && timeline === members[0]?.timeline
      const holder = (wanted: Role) => members.find(({ role }) => role === wanted)?.name
      const [leader, sync_standby] = [holder('leader'), holder('sync_standby')]
      const isComplete = members.length === this.nodes.length && members.every(isUp)
      return isComplete && leader && sync_standby ? { leader, sync_standby } : undefined
    })
  }

  /** Waits until another node has the role of this one. */
  async replaces(lost: string, role: Role): Promise<void> {
    const isOther = (member: Member) => member.role === role && member.name !== lost
    await until(`another ${role}`, async () => (await this.#members()).some(isOther) || undefined)
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
      // `ttl` is the time without a sign of life after which a node is gone; its default is 30.
      dcs: { ttl: 20, loop_wait: 2, retry_timeout: 5, synchronous_mode: true, postgresql: { use_pg_rewind: true } },
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
