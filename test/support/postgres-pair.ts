import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { ask, type Cluster, type Standby, startCluster } from './postgres.ts'
import { until } from './process.ts'

/** A primary that acknowledges nothing before its hot standby has it, too. */
export interface Pair extends AsyncDisposable {
  readonly primary: Cluster
  readonly standby: Standby
}

export async function startPair(): Promise<Pair> {
  await using stack = new AsyncDisposableStack()
  const primary = stack.use(await startCluster())
  const standby = stack.use(await primary.newStandby())
  await using sql = new SQL(primary.url(), { max: 1 })
  const isInState = (state: string) => async () => {
    const rows =
      await sql`SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = ${state}`
    return rows.length > 0 || undefined
  }
  await until('the standby to follow', isInState('async'))
  await sql`ALTER SYSTEM SET synchronous_standby_names = 'standby'`
  await sql`SELECT pg_reload_conf()`
  await until('the primary to wait for it', isInState('sync'))
  const owned = stack.move()
  return { primary, standby, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** In good order: the primary stops, its standby takes over, and the former primary comes back as the standby of that. */
export async function switchOver({ primary, standby }: Pair): Promise<void> {
  const [host, port] = standby.host.split(':')
  const source = `host=${host} port=${port} user=postgres`
  await ask(primary.url(), 'ALTER SYSTEM RESET synchronous_standby_names')
  await ask(primary.url(), `ALTER SYSTEM SET primary_conninfo = '${source}'`)
  const folder = await dataFolderOf(primary)
  await primary.stop('SIGINT')
  await standby.promote()
  writeFileSync(join(folder, 'standby.signal'), '')
  await primary.start()
}

async function dataFolderOf(cluster: Cluster): Promise<string> {
  await using sql = new SQL(cluster.url(), { max: 1 })
  const [row] = await sql.unsafe<{ data_directory: string }[]>('SHOW data_directory')
  return row?.data_directory ?? ''
}

/** The address of a database on the first of the hosts, with the others named after it. */
export function withHosts(url: string, ...hosts: readonly Cluster[]): string {
  return url.replace(/(@|\/\/)127\.0\.0\.1:\d+\//, `$1${hosts.map(({ host }) => host).join(',')}/`)
}
