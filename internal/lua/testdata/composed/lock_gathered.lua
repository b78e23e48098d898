--!df flags=allow-undeclared-keys
local reply = {}
for i = 1, #ARGV / 3 do
  local NAME, owner, now, lease = KEYS[i], ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
  reply[i] = 0
  if lease == '' then
    if redis.pcall('EXISTS', QUEUE) == 0 and redis.pcall('HDEL', NAME, owner) == 1 then reply[i] = 1 end
  elseif redis.pcall('EXISTS', NAME, QUEUE) == 0 then -- the user may not be allowed to look
    local TOKEN, floor = 'redisson_lock_token:{' .. NAME .. '}', ''
    local last = redis.pcall('SET', TOKEN, now, 'KEEPTTL', 'GET')
    if not last or type(last) == 'string' then -- else it holds foreign data, or Redis refuses writes
local newest = last and last < now and floor < now and #last == 16 and last > '1'
  and string.byte(last, 7) == string.byte(now, 7)
      if not last then redis.call('PEXPIRE', TOKEN, '3600000') end -- an hour, as in shared/behind.lua
      if newest or not last then
        redis.call('HSET', NAME, owner, 't' .. now .. '/' .. lease)
        redis.call('PEXPIRE', NAME, lease)
        reply[i] = now
      else
        redis.call('SET', TOKEN, last, 'KEEPTTL')
      end
    end
  end
end
return reply
