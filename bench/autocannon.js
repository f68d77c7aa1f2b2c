// Runs autocannon under Node with the plan in its argument, and prints the figures as JSON.
import autocannon from 'autocannon'

const { requests, ...plan } = JSON.parse(process.argv[2])
let clients = 0
const withKey = request => ({ ...request, headers: { ...request.headers, 'idempotency-key': crypto.randomUUID() } })
const setUp = requests.map(({ keyed, ...request }) => (keyed ? { ...request, setupRequest: withKey } : request))
const result = await autocannon({
  ...plan,
  // Connections start at different requests; otherwise all of them would create at the same moment.
  setupClient(client) {
    const start = (clients++ * 7) % setUp.length
    client.setRequests([...setUp.slice(start), ...setUp.slice(0, start)])
  },
})
const { latency, non2xx, errors, timeouts, duration: seconds } = result
process.stdout.write(
  JSON.stringify({
    requests: result.requests.total,
    seconds,
    p50Ms: latency.p50,
    p99Ms: latency.p99,
    failures: non2xx + errors + timeouts,
  }),
)
