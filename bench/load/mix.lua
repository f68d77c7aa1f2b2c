local here = debug.getinfo(1, "S").source:match("^@(.*)/")
local scatter = dofile(here .. "/scatter.lua")

function init(args)
  local get = scatter(args[1], args[2], args[3])
  local list = wrk.format("GET", args[4])
  local create = wrk.format("POST", args[5], {
    ["Authorization"] = wrk.headers["Authorization"],
    ["Content-Type"] = "application/json"
  }, args[6])
  local lists, gets = tonumber(args[7]), tonumber(args[8])
  local all = lists + gets + tonumber(args[9])
  local turn = 0

  -- 11 has no factor in common with 50: the few gets and creates stand apart from one another.
  request = function()
    turn = (turn + 11) % all
    if turn < lists then return list end
    if turn < lists + gets then return get() end
    return create
  end
end
