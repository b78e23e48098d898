-- offer: give what a writer holds to the next in the queue and queue behind it, or keep it under a fresh id
-- when nobody waits. As lock/offer.lua, for the write half.
--
-- Keys  as in rwlock/state.lua
-- ARGV and reply: as in lock/offer.lua
-- include rwlock/grant.lua
-- include rwlock/holders.lua
-- include shared/place.lua

local id = ARGV[1]
local holds = redis.call('HMGET', NAME, id .. ':write', ARGV[7] .. ':write')
if holds[1] then
  local token, reserved = state_token()
  if token then
    redis.call('PEXPIRE', NAME, ARGV[3])
    redis.call('HSET', STATE, 'short', '')
    return owner_reply(token, reserved)
  end
end
if not holds[2] then return {REPLY_GONE, 0, clock()} end
if moving then
  moving.need(TOKEN) -- before anything is queued: a copy would queue it again
  moving.need(STATE)
end
if ARGV[8] ~= '' and not (moving and moving.lacks(QUEUE)) then redis.call('LREM', QUEUE, 0, ARGV[8]) end

former, mode = {ARGV[7] .. ':write'}, nil
local entry, queues = '1:' .. id .. ':' .. ARGV[3] .. ':' .. ARGV[5], ARGV[4] ~= 'try'
-- redisson -- inline rwlock/leaveto.lua
-- While the slot moves, the entry is queued first: when the last entry is taken from the queue, its key is
-- gone.
local early = moving and queues and not moving.lacks(QUEUE)
if early then redis.call('RPUSH', QUEUE, entry) end
local granted, token, reserved = serve(early and entry, queues)
if token then return owner_reply(token, reserved) end
if granted == 0 then
  if early then redis.call('LREM', QUEUE, -1, entry) end
  -- redisson AHEAD = within_turns(AHEAD)
  token, reserved = next_token(clock(), AHEAD, tonumber(ARGV[9]))
  own_write(id, ARGV[3], token, reserved, ARGV[3])
  return owner_reply(token, reserved)
end
local now, left = clock(), holder_left()
if not queues then return {REPLY_BUSY, left or 0, now} end
local sequence = next_place(now)
if not early then redis.call('RPUSH', QUEUE, entry) end
redis.call('PEXPIRE', QUEUE, QUEUE_KEPT)
note_lease(ARGV[3], id)
return {sequence, ask_in(left or 0), now}
