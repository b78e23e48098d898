--!df flags=allow-undeclared-keys
local DAY = '86400000' -- ms
local alone = #KEYS == 1
if alone then KEYS[2] = table.remove(ARGV) end
local reply = {}
for i = 1, #ARGV / 2 do
  local lock, state, owner, lease = KEYS[2 * i - 1], KEYS[2 * i], ARGV[2 * i - 1], ARGV[2 * i]
  local holds = redis.pcall('HMGET', lock, owner, owner .. ':write')
  reply[i] = 0
  if holds[1] then
    local name = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
    local timeout = name .. ':' .. owner .. ':rwlock_timeout:1'
    local kept = redis.pcall('PEXPIRE', timeout, lease)
    if kept == 0 then kept = redis.pcall('EXISTS', lock, timeout) == 1 and 0 end
    if type(kept) ~= 'number' then
      error('TRYAGAIN the slot is moving, and ' .. timeout .. ' may be on the other side')
    end
    if redis.call('PTTL', lock) < tonumber(lease) then redis.call('PEXPIRE', lock, lease) end
    if kept == 0 then redis.call('SET', timeout, lease, 'PX', lease) end -- over, and nobody has taken it yet
    reply[i] = 1
  elseif holds[2] then
    redis.call('PEXPIRE', lock, lease)
    if redis.pcall('HGET', state, 'short') == owner then redis.call('HSET', state, 'short', '') end
    reply[i] = 1
  end
  if reply[i] == 1 then redis.pcall('PEXPIRE', state, DAY) end
end
local t = redis.call('TIME')
reply[#reply + 1] = t[1] * 1000000 + t[2]
return reply
