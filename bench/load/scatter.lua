-- Requests for animals all over a range, made before the clock runs: asking costs wrk no more than a fixed request.
local count = 10000

return function(prefix, from, to)
  local requests = {}
  math.randomseed(4711)
  for i = 1, count do
    requests[i] = wrk.format("GET", prefix .. math.random(tonumber(from), tonumber(to)))
  end
  local next = 0
  return function()
    next = next % count + 1
    return requests[next]
  end
end
