-- offer: give what a writer holds to the next in the queue and queue behind it, or keep it under a fresh id
-- when nobody waits. As lock/offer.lua, for the write half.
--
-- KEYS  as in rwlock/state.lua
-- ARGV and reply: as in lock/offer.lua
-- include rwlock/grant.lua
-- include rwlock/holders.lua

local id = ARGV[1]
local holds = redis.call('HMGET', KEYS[1], id .. ':write', ARGV[9] .. ':write')
if holds[1] then
  local token, reserved = state_token()
  if token then
    redis.call('PEXPIRE', KEYS[1], ARGV[5])
    redis.call('HSET', KEYS[4], 'short', '')
    return owner_reply(token, reserved)
  end
end
if not holds[2] then return {-3, 0, micros()} end
if moving then
  moving.need(KEYS[3]) -- before anything is queued: a copy would queue it again
  moving.need(KEYS[4])
end
if ARGV[10] ~= '' and not (moving and moving.lacks(KEYS[2])) then redis.call('LREM', KEYS[2], 0, ARGV[10]) end

former, mode = {ARGV[9] .. ':write'}, nil
local entry, queues = '1:' .. id .. ':' .. ARGV[5] .. ':' .. ARGV[8], ARGV[6] ~= 'try'
-- While the slot moves, the entry is queued first: when the last entry is taken from the queue, its key is
-- gone.
local early = moving and queues and not moving.lacks(KEYS[2])
if early then redis.call('RPUSH', KEYS[2], entry) end
local granted, token, reserved = serve(early and entry, queues)
if token then return owner_reply(token, reserved) end
if granted == 0 then
  local text
  if early then redis.call('LREM', KEYS[2], -1, entry) end
  token, text, reserved = next_token(micros(), AHEAD, tonumber(ARGV[11]))
  own_write(id, ARGV[5], text, reserved, ARGV[5])
  return owner_reply(token, reserved)
end
local now, left = micros(), holder_left()
if not queues then return {-1, left or 0, now} end
local sequence = next_token(now)
if not early then redis.call('RPUSH', KEYS[2], entry) end
redis.call('PEXPIRE', KEYS[2], QUEUE_KEPT)
note_lease(ARGV[5], id)
return {sequence, ask_in(left or 0), now}
