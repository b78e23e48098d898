-- gathered: requests of one client that were ready at the same moment, each for another lock: to take it, or
-- to end a tenure. One is done as lock/acquire.lua or lock/release.lua does it when nobody owns the lock or
-- waits for it. Otherwise it is left undone, and its caller sends that script. So no request fails because of
-- another one. Safe to repeat, as those scripts are.
--
-- KEYS  of each request: NAME, which has no braces; then others that a server wants to hear of
-- ARGV  of each request: owner id, clock, lease
--       clock  as the client reckons, in 16 digits, above all tokens of the name that it has seen
--       lease  ms; empty: end the tenure, and the clock is unused
-- Reply for each: the token; or 1, the id owned the lock until now; or 0, it was left undone

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
      -- inline shared/newest.lua
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
