// Runs autocannon under Node, and prints what it counted.
import autocannon from 'autocannon'

const { requests, ...plan } = JSON.parse(process.argv[2])
let clients = 0
const result = await autocannon({
  ...plan,
  // Each connection begins elsewhere: else all of them would create at the same moment.
  setupClient(client) {
    const begin = (clients++ * 7) % requests.length
    client.setRequests([...requests.slice(begin), ...requests.slice(0, begin)])
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
