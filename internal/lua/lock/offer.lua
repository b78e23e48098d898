-- offer: give the lock to the next waiter and queue behind it, or keep the lock under a fresh id when nobody
-- waits. A process that hands on inside lets others have their turn with this, and reserves its next tokens.
-- It must not send it while the lock is used. Safe to repeat. A late copy does nothing, because the first one
-- has ended the old id, whatever else it did.
--
-- KEYS  1 lock, 2 queue, 3 token: as in lock/acquire.lua
-- ARGV  1 to 8 as in lock/acquire.lua, for the fresh id. In mode try the fresh id does not queue. 7 is not
--         used: the queue grows by one entry and shrinks by one
--       9 old id           which owns the lock
--       10 old entry       the old id's queue entry when it may be queued, else the empty string
--       11 lean            how many tokens to reserve for a name that is far ahead of the clock
-- Reply as in lock/acquire.lua, and
--       {-3, 0, now}       neither id owns the lock; an earlier copy may have queued the fresh id
-- include shared/token.lua
-- include lock/lease.lua
-- include lock/grant.lua

local held = redis.call('HMGET', KEYS[1], ARGV[1], 'token', ARGV[9])
local token, reserved = parse_token(held[2])
if held[1] and token then
  -- An earlier copy may have queued the fresh id, and a message may have granted it the lock since. Its
  -- process has reacted: from now on its whole lease counts.
  redis.call('HDEL', KEYS[1], 'short')
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  return owner_reply(token, reserved)
end
if not held[3] then return {-3, 0, micros()} end
if moving then moving.need(KEYS[3]) end -- before anything is queued: a copy would queue it again
if ARGV[10] ~= '' and not (moving and moving.lacks(KEYS[2])) then redis.call('LREM', KEYS[2], 0, ARGV[10]) end

former = {ARGV[9]}
local entry, queues = '1:' .. ARGV[1] .. ':' .. ARGV[5] .. ':' .. ARGV[8], ARGV[6] ~= 'try'
-- While the slot moves, the entry is queued first: when the last entry is taken from the queue, its key is
-- gone.
local early = moving and queues and not moving.lacks(KEYS[2])
if early then redis.call('RPUSH', KEYS[2], entry) end
local more
token, more = grant(early and entry, nil, queues)
if token and token > 0 then return owner_reply(token, more) end
if not token then
  local text
  token, text, reserved = next_token(micros(), AHEAD, tonumber(ARGV[11]))
  own(ARGV[1], ARGV[5], text, reserved, string.match(ARGV[8], 'l$'))
  return owner_reply(token, reserved)
end
local now = micros()
if not queues then return {-1, lease_left(now) or 0, now} end
local sequence = next_token(now)
if not early then redis.call('RPUSH', KEYS[2], entry) end
redis.call('PEXPIRE', KEYS[2], QUEUE_KEPT)
note_lease(ARGV[5], ARGV[1])
return {sequence, ask_in(lease_left(now) or 0), now}
