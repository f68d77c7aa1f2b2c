import type { Catalogues } from './catalogues.ts'
import type { Part } from './contenders.ts'
import { allLoads, type Load, loads } from './loads.ts'
import { log, type Sample } from './report.ts'
import { type Server, send, start } from './server.ts'
import { verify } from './verify.ts'

const warmUpSeconds = 2

/** Measures all contenders in each round. The first one of a round is the last of the next. */
export async function measure(part: Part, rounds: number, seconds: number, catalogues: Catalogues) {
  const count = part.contenders.flatMap(each => each.loads).length * rounds
  log(`${part.title}: at least ${Math.ceil((count * (seconds + warmUpSeconds)) / 60)} min`)
  const samples: Sample[] = []
  let { contenders } = part
  for (let round = 1; round <= rounds; round++) {
    log(`round ${round} of ${rounds}`)
    const measured = await measureRound({ ...part, contenders }, seconds, catalogues)
    samples.push(...measured.map(each => ({ ...each, round })))
    contenders = [...contenders.slice(1), ...contenders.slice(0, 1)]
  }
  return samples
}

type Measured = Omit<Sample, 'round'>

/** Starts all contenders and checks their responses. Each load then goes to one contender after another. */
async function measureRound(part: Part, seconds: number, catalogues: Catalogues): Promise<readonly Measured[]> {
  await using stack = new AsyncDisposableStack()
  const servers: Server[] = []
  for (const contender of part.contenders) {
    const server = stack.use(await start(contender, catalogues))
    await verify(server)
    servers.push(server)
  }
  // Otherwise the system would write the copied catalogues to disk during the measurement.
  Bun.spawnSync(['sync'])
  const samples: Measured[] = []
  for (const load of allLoads) {
    for (const server of servers.filter(({ contender }) => contender.loads.includes(load))) {
      samples.push(...(await measureLoad(load, server, seconds, part)))
    }
  }
  return samples
}

/** Empty if a request failed. */
async function measureLoad(load: Load, server: Server, seconds: number, part: Part): Promise<readonly Measured[]> {
  // The first load warms the server up: runtimes compile hot code.
  await send(load, server, warmUpSeconds, part)
  const before = server.usage()
  const sent = await send(load, server, seconds, part)
  const { cpuMs, peakMb } = server.usage()
  const contender = server.contender.name
  const requestsPerSecond = sent.requests / sent.seconds
  const cpuMicroseconds = ((cpuMs - before.cpuMs) * 1_000) / sent.requests
  log(`${loads[load]}: ${contender}: ${Math.round(requestsPerSecond).toLocaleString('en')} requests/s`)
  if (sent.failures === 0) return [{ contender, load, requestsPerSecond, cpuMicroseconds, p99Ms: sent.p99Ms, peakMb }]
  log(`not counted: ${sent.failures} requests failed`)
  return []
}
