-- The requests of wrk. Arguments: workload, path of the pets, path of a pet with its id as %d, path of the list, first
-- id, last id, body of a new pet.

-- Builds the GET requests before the clock runs, so that they cost wrk no more than a fixed request.
local function spread(format, from, to)
  local count = 10000
  local requests = {}
  math.randomseed(4711)
  for i = 1, count do
    requests[i] = wrk.format("GET", format:format(math.random(tonumber(from), tonumber(to))))
  end
  local last = 0
  return function()
    last = last % count + 1
    return requests[last]
  end
end

-- Of 50 requests, 45 list, 4 get and 1 creates. Steps of 11 keep the gets and creates apart.
local function mix(list, get, create)
  local turn = 0
  return function()
    turn = (turn + 11) % 50
    if turn < 45 then return list end
    if turn < 49 then return get() end
    return create
  end
end

function init(args)
  local workload, pets, pet, list, from, to, body = unpack(args)
  local headers = { ["Authorization"] = wrk.headers["Authorization"], ["Content-Type"] = "application/json" }
  local get = spread(pet, from, to)
  local create = wrk.format("POST", pets, headers, body)
  local requests = {
    get = get,
    create = function() return create end,
    mix = mix(wrk.format("GET", list), get, create),
  }
  request = requests[workload]
end
