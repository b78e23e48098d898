-- renew: extend the leases of many holders of permits in one step. Safe to repeat.
--
-- KEYS  for each holder: timeouts, holders: as in permit/leased.lua
-- ARGV  for each holder: owner id, lease in ms
--       For a single holder in a slot that is moving, the call names the first key alone, and the second one
--       follows the arguments: see shared/moving.lua.
-- Reply for each holder: 1 extended, 0 the id holds no permits any more; then the server's clock in
--       microseconds
-- include permit/holder.lua

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local alone = #KEYS == 1
if alone then KEYS[2] = table.remove(ARGV) end
local reply = {}
for i = 1, #ARGV / 2 do
  local timeouts, holders = KEYS[2 * i - 1], KEYS[2 * i]
  local prefix = base(ARGV[2 * i - 1])
  -- Foreign data under one name: that holder alone has lost its permits.
  local held, ends = redis.pcall('HGET', holders, prefix), redis.pcall('ZSCORE', timeouts, prefix .. '\0\0')
  reply[i] = 0
  if alone and type(ends) == 'string' and type(held) ~= 'string'
    and type(redis.pcall('EXISTS', timeouts, holders)) ~= 'number' then
    error('TRYAGAIN the slot is moving, and ' .. holders .. ' may be on the other side')
  end
  local n, token, short, owner = parse_holder(type(held) == 'string' and held or nil)
  if n and type(ends) == 'string' and (tonumber(ends) or math.huge) > now then
    local permits = {}
    append_permits(permits, prefix, 0, n, string.format('%.0f', now + 1 + ARGV[2 * i]))
    -- First, because Redis never refuses it for lack of memory, nor what follows it.
    redis.call('PEXPIRE', holders, HOLDERS_KEPT)
    redis.call('ZADD', timeouts, 'XX', unpack(permits))
    if short == '1' then -- the owner has reacted: from now on its whole lease counts
      redis.call('HSET', holders, prefix, n .. ':' .. token .. ':0:' .. ARGV[2 * i] .. ':' .. owner)
    end
    reply[i] = 1
  end
end
reply[#reply + 1] = t[1] * 1000000 + t[2]
return reply
