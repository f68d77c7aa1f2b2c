local here = debug.getinfo(1, "S").source:match("^@(.*)/")
local scatter = dofile(here .. "/scatter.lua")

function init(args)
  request = scatter(args[1], args[2], args[3])
end
