-- The requests of wrk. Arguments: kind, path of the pets, path of a pet with its id as %d, path of the list, first id,
-- last id, body of a new pet, prefix of the idempotency keys.

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

local function keyed(pets, body, prefix)
  local headers = { ["Authorization"] = wrk.headers["Authorization"], ["Content-Type"] = "application/json" }
  local last = 0
  return function()
    last = last + 1
    headers["Idempotency-Key"] = prefix .. last
    return wrk.format("POST", pets, headers, body)
  end
end

function init(args)
  local kind, pets, pet, list, from, to, body, prefix = unpack(args)
  if kind == "get" then
    request = spread(pet, from, to)
  elseif kind == "create" then
    wrk.method = "POST"
    wrk.headers["Content-Type"] = "application/json"
    wrk.body = body
  elseif kind == "keyed" then
    request = keyed(pets, body, prefix)
  else
    local headers = { ["Authorization"] = wrk.headers["Authorization"], ["Content-Type"] = "application/json" }
    request = mix(wrk.format("GET", list), spread(pet, from, to), wrk.format("POST", pets, headers, body))
  end
end
