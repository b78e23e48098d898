-- acquire: take one half of the lock, or join its queue. A waiter also uses it to ask again ("re-check"), and
-- to confirm a grant. Safe to repeat, as lock/acquire.lua.
--
-- KEYS  as in rwlock/state.lua
-- ARGV  1 to 7 as in lock/acquire.lua
--       8 demand: see rwlock/state.lua
-- Reply as in lock/acquire.lua. {0, token, 0, 1} tells a reader that somebody waits
-- include rwlock/take.lua
-- include rwlock/grant.lua
-- include rwlock/holders.lua

local id = ARGV[1]
local holds = redis.call('HMGET', KEYS[1], id, id .. ':write')
if holds[2] then
  local token, reserved = state_token()
  if token then
    redis.call('PEXPIRE', KEYS[1], ARGV[5]) -- first: Redis never refuses it for lack of memory
    redis.call('HSET', KEYS[4], 'short', '')
    return owner_reply(token, reserved)
  end
elseif holds[1] then
  return owner_reply(own_read(id, ARGV[5], ARGV[5]), 0)
end

local entry = '1:' .. id .. ':' .. ARGV[5] .. ':' .. ARGV[8]
local left = holder_left()
local granted, token, reserved = serve(entry)
if token then return owner_reply(token, reserved) end
local now = micros()
if fits(reads) and others_wait() == 0 then return own_now() end
if granted > 0 then left = holder_left() end
if former[1] then -- the lock is free, and the next who waits cannot be granted it here
  drop_former()
  redis.call('DEL', KEYS[1])
end
if how == 'try' then return {-1, left or 0, now} end

if moving then moving.need(KEYS[2]) end
local sequence, place = 0, how == 'again' and redis.call('LPOS', KEYS[2], entry)
if not place then
  place = redis.call('LLEN', KEYS[2])
  if place >= tonumber(ARGV[7]) then return {-2, place, now} end
  if moving then moving.need(KEYS[3]) end
  sequence = next_token(now)
  redis.call('RPUSH', KEYS[2], entry)
end
-- The owners' processes let more in, and do not know yet that others wait: w is for want. Readers are told
-- with each question of the first who waits, as they do not ask by themselves.
if place == 0 and (mode == 'read' or sequence > 0 and select(2, state_token()) > 0) then tell_holders('w') end
redis.call('PEXPIRE', KEYS[2], QUEUE_KEPT)
note_lease(ARGV[5], id)
return {sequence, ask_in(left or 0), now}
