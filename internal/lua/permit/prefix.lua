-- prefix: how the permits of an owner begin: see base in permit/holder.lua. It puts that into the local
-- prefix. It is made to be inlined where owner is known, and prefix is a local.
local colon = string.find(owner, ':', 1, true)
local number = string.sub(owner, colon + 1, #owner > colon + 9 and -10 or -1)
local fourth = number % 256
local high = (number - fourth) / 256
local third = high % 256
high = (high - third) / 256
local second = high % 256
prefix = (colon > 10 and string.sub(owner, colon - 10, colon - 1)
  or string.sub('..........' .. string.sub(owner, 1, colon - 1), -10))
  .. string.char((high - second) / 256 % 256, second, third, fourth)
