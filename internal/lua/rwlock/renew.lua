-- renew: extend the leases of many holds of read-write locks in one step. Safe to repeat.
--
-- KEYS  for each hold: lock, state: as in rwlock/state.lua
-- ARGV  for each hold: owner id, lease in ms
--       For a single hold in a slot that is moving, the call names the first key alone, and the second one
--       follows the arguments: see shared/moving.lua.
-- Reply for each hold: 1 renewed, 0 the id does not hold it any more; then the server's clock in microseconds

local DAY = '86400000' -- ms
local alone = #KEYS == 1
if alone then KEYS[2] = table.remove(ARGV) end
local reply = {}
for i = 1, #ARGV / 2 do
  local lock, state, owner, lease = KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i - 1], ARGV[2 * i]
  -- Foreign data under one name: that hold alone is lost.
  local holds = redis.pcall('HMGET', lock, owner, owner .. ':write')
  reply[i] = 0
  if holds[1] then
    local name = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
    local timeout = name .. ':' .. owner .. ':rwlock_timeout:1'
    local kept = redis.pcall('PEXPIRE', timeout, lease)
    -- Both sides of a move refuse a command over two keys when one of them is missing.
    if kept == 0 then kept = redis.pcall('EXISTS', lock, timeout) == 1 and 0 end
    if type(kept) ~= 'number' then
      error('TRYAGAIN the slot is moving, and ' .. timeout .. ' may be on the other side')
    end
    if redis.call('PTTL', lock) < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
    if kept == 0 then redis.call('SET', timeout, lease, 'PX', lease) end -- over, and nobody has taken it yet
    reply[i] = 1
  elseif holds[2] then
    redis.call('PEXPIRE', lock, lease)
    -- The owner has reacted: from now on its whole lease counts.
    if redis.pcall('HGET', state, 'short') == owner then redis.call('HSET', state, 'short', '') end
    reply[i] = 1
  end
  if reply[i] == 1 then redis.pcall('PEXPIRE', state, DAY) end
end
local t = redis.call('TIME')
reply[#reply + 1] = t[1] * 1000000 + t[2]
return reply
