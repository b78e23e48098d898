-- offer: give the lock to the next waiter and queue behind it, or keep the lock under a fresh id when nobody
-- waits. A process that hands on inside lets others have their turn with this, and reserves its next tokens.
-- It must not send it while the lock is used. Safe to repeat. A late copy does nothing, because the first one
-- has ended the old id, whatever else it did.
--
-- Keys  as in lock/acquire.lua
-- ARGV  1 to 6 as in lock/acquire.lua, for the fresh id. In mode try the fresh id does not queue. 6 is not
--         used: the queue grows by one entry and shrinks by one
--       7 old id           which owns the lock
--       8 old entry        the old id's queue entry when it may be queued, else the empty string
--       9 lean             how many tokens to reserve for a name that is far ahead of the clock
-- Reply as in lock/acquire.lua, and
--       {GONE, 0, now}     neither id owns the lock; an earlier copy may have queued the fresh id
-- include lock/owner.lua
-- include shared/pace.lua
-- include shared/place.lua

local held = redis.call('HMGET', NAME, ARGV[1], ARGV[7])
local token, reserved, _, _, granted = parse_token(held[1])
if token then
  -- An earlier copy may have queued the fresh id, and a message may have granted it the lock since. Its
  -- process has reacted: from now on its whole lease counts.
  redis.call('PEXPIRE', NAME, ARGV[3])
  if granted then redis.call('HSET', NAME, ARGV[1], (string.gsub(held[1], '!.*', ''))) end
  return owner_reply(token, reserved)
end
if not held[2] then return {REPLY_GONE, 0, clock()} end
if moving then moving.need(TOKEN) end -- before anything is queued: a copy would queue it again
if ARGV[8] ~= '' and not (moving and moving.lacks(QUEUE)) then redis.call('LREM', QUEUE, 0, ARGV[8]) end

former = {ARGV[7]}
local entry, queues = '1:' .. ARGV[1] .. ':' .. ARGV[3] .. ':' .. ARGV[5], ARGV[4] ~= 'try'
-- redisson -- inline lock/leaveto.lua
-- While the slot moves, the entry is queued first: when the last entry is taken from the queue, its key is
-- gone.
local early = moving and queues and not moving.lacks(QUEUE)
if early then redis.call('RPUSH', QUEUE, entry) end
token, reserved = grant(early and entry, nil, queues)
if token then return owner_reply(token, reserved) end
local now = clock()
if token == nil then
  -- redisson AHEAD = within_turns(AHEAD)
  token, reserved = next_token(now, AHEAD, tonumber(ARGV[9]))
  own(ARGV[1], ARGV[3], token, reserved, string.match(ARGV[5], 'l?$'))
  return owner_reply(token, reserved)
end
local function left()
  local _, _, longest, _, at = parse_token(fields()[2])
  return lease_left(now, longest, at) or 0
end
if not queues then return {REPLY_BUSY, left(), now} end
local sequence = next_place(now)
if not early then redis.call('RPUSH', QUEUE, entry) end
redis.call('PEXPIRE', QUEUE, QUEUE_KEPT)
note_lease(ARGV[3], ARGV[1])
return {sequence, ask_in(left()), now}
