-- offer: give the lock to the next waiter and queue behind it, or keep it under a fresh id when nobody waits. How a process
-- that hands on inside lets the others have their turn, and how it reserves its next tokens. It must not be sent while
-- the lock is used. Safe to repeat, and a late copy does nothing: whatever the first one did has ended the old id.
--
-- KEYS  1 lock, 2 queue, 3 token: as in acquire.lua
-- ARGV  1 to 8 as in acquire.lua, for the fresh id; in mode try it does not queue; 7 is not looked at: a place is swapped
--       9 old id           which owns the lock
--       10 old entry       its queue entry when it may be queued, else the empty string
--       11 lean            how many tokens to reserve of a name that is ahead of the clock: see token.lua
-- Reply as in acquire.lua, and
--       {-3, 0, now}       neither id owns the lock: the fresh one may be queued by an earlier copy
-- include token.lua
-- include lease.lua
-- include grant.lua

local held = redis.call('HMGET', KEYS[1], ARGV[1], 'token', ARGV[9])
local token, reserved = parse_token(held[2])
if held[1] and token then
  -- It may have been queued by an earlier copy, and granted by message since: from now on its whole lease counts.
  redis.call('HDEL', KEYS[1], 'short')
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  return owner_reply(token, reserved)
end
if not held[3] then return {-3, 0, micros()} end
if moving then moving.need(KEYS[3]) end -- before anything is queued: a copy would queue it again
if ARGV[10] ~= '' and not (moving and moving.lacks(KEYS[2])) then redis.call('LREM', KEYS[2], 0, ARGV[10]) end

former = {ARGV[9]}
local entry, queues = '1:' .. ARGV[1] .. ':' .. ARGV[5] .. ':' .. ARGV[8], ARGV[6] ~= 'try'
-- Before the last one is taken from the queue, whose key would be gone.
local early = moving and queues and not moving.lacks(KEYS[2])
if early then redis.call('RPUSH', KEYS[2], entry) end
local more
token, more = grant(early and entry, nil, queues)
if token and token > 0 then return owner_reply(token, more) end
if not token then
  local text
  token, text, reserved = next_token(micros(), AHEAD, tonumber(ARGV[11]))
  own(ARGV[1], ARGV[5], text, reserved)
  return owner_reply(token, reserved)
end
local now = micros()
if not queues then return {-1, lease_left(now) or 0, now} end
local sequence = next_token(now)
if not early then redis.call('RPUSH', KEYS[2], entry) end
redis.call('PEXPIRE', KEYS[2], QUEUE_KEPT)
note_lease(ARGV[5], ARGV[1])
return {sequence, ask_in(lease_left(now) or 0), now}
