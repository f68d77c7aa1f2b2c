-- What wrk sends and prints. Arguments: a file with a path on each line, or POST for a creation; the path and the body
-- of a creation.

local requests = {}
local last = 0

-- Builds the requests before the clock runs, so that they cost wrk no more than a fixed request.
function init(args)
  local file, pets, body = unpack(args)
  local headers = { ["Authorization"] = wrk.headers["Authorization"], ["Content-Type"] = "application/json" }
  local create = wrk.format("POST", pets, headers, body)
  for line in io.lines(file) do
    requests[#requests + 1] = line == "POST" and create or wrk.format("GET", line)
  end
end

function request()
  last = last % #requests + 1
  return requests[last]
end

-- The last line of the output; wrk counts microseconds.
function done(summary, latency)
  local errors = summary.errors
  local failures = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  local format = '{"requests":%d,"p99Ms":%f,"failures":%d}\n'
  io.write(format:format(summary.requests, latency:percentile(99) / 1e3, failures))
end
