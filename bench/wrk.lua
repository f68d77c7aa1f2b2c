-- The requests of wrk. Arguments: read, create or mix, a file with the paths of GET requests, path of the pets, body of a new pet.

-- Builds the requests before the clock runs, so that they cost wrk no more than a fixed request.
local function requestsOf(file)
  local requests = {}
  for path in io.lines(file) do
    requests[#requests + 1] = wrk.format("GET", path)
  end
  local last = 0
  return function()
    last = last % #requests + 1
    return requests[last]
  end
end

function init(args)
  local kind, file, pets, body = unpack(args)
  local headers = { ["Authorization"] = wrk.headers["Authorization"], ["Content-Type"] = "application/json" }
  local create = wrk.format("POST", pets, headers, body)
  local read = requestsOf(file)
  local turn = 0
  local kinds = {
    read = read,
    create = function() return create end,
    mix = function()
      turn = turn % 50 + 1
      if turn == 50 then return create end
      return read()
    end,
  }
  request = kinds[kind]
end
