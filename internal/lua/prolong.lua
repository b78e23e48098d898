-- prolong: extend the leases of many holders of permits in one step. Safe to repeat.
--
-- KEYS  for each: timeouts, holders: as in leased.lua
-- ARGV  for each: owner id, lease in ms
-- Reply for each: 1 extended, 0 the id holds no permits any more
-- include extend.lua

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local reply = {}
for i = 1, #ARGV / 2 do
  local client, number = string.match(ARGV[2 * i - 1], '^([^:]+):(%d+)$')
  -- Another type under the name means lost, for this holder alone.
  local ok, token = pcall(extend, KEYS[2 * i - 1], KEYS[2 * i], client, number, ARGV[2 * i], now)
  reply[i] = ok and token and 1 or 0
end
return reply
