-- acquire: take one half of the lock, or join its queue. A waiter also uses it to ask again ("re-check"), and
-- to confirm a grant. Safe to repeat, as lock/acquire.lua.
--
-- Keys  as in rwlock/state.lua
-- ARGV  as in lock/acquire.lua, and
--       4 mode: again may be followed by a space and the place that the last reply told
--       5 demand: see rwlock/state.lua; missing: 0
-- Reply as in lock/acquire.lua, and
--       {0, token, 0, 1}                 a reader holds it, and somebody waits
--       {sequence, ends, now, 0, place}  queued; place: how many stand before it, when these are many
-- include rwlock/take.lua
-- include rwlock/grant.lua
-- include rwlock/holders.lua
-- include shared/place.lua

local LONGEST, FAR = 100000, 64

-- Whether the writer's process hands on inside, or has asked to be told: see rwlock/watch.lua.
local function writer_hears()
  local state = redis.call('HMGET', STATE, 'token', 'writer', 'watched')
  local _, reserved = parse_token(state[1])
  return reserved > 0 or state[2] and state[2] ~= '' and state[2] == state[3]
end

local id = ARGV[1]
local holds = redis.call('HMGET', NAME, id, id .. ':write')
if holds[2] then
  local token, reserved = state_token()
  if token then
    redis.call('PEXPIRE', NAME, ARGV[3]) -- first: Redis never refuses it for lack of memory
    redis.call('HSET', STATE, 'short', '')
    return owner_reply(token, reserved)
  end
elseif holds[1] then
  return owner_reply(own_read(id, ARGV[3], ARGV[3]), 0)
end

local entry = '1:' .. id .. ':' .. ARGV[3] .. ':' .. (ARGV[5] or '0')
if how == 'again' then
  -- inline shared/asks.lua
end
local left = holder_left(entry)
local granted, token, reserved = serve(entry)
if unanswered then
  -- inline shared/call.lua
end
if token then return owner_reply(token, reserved) end
local now = clock()
if fits(reads) and others_wait() == 0 then return own_now() end
if granted > 0 then left = holder_left() end
if former[1] then -- the lock is free, and the next who waits cannot be granted it here
  drop_former()
  redis.call('DEL', NAME)
  -- redisson if redisson_waits() then announce('00') end -- they sleep until the end that they have read
end
-- redisson -- inline rwlock/barred.lua
if how == 'try' then return {REPLY_BUSY, left or 0, now} end

if moving then moving.need(QUEUE) end
local sequence, place = 0, how == 'again' and redis.call('LPOS', QUEUE, entry)
if not place then
  place = redis.call('LLEN', QUEUE)
  if place >= tonumber(ARGV[6] or LONGEST) then return {REPLY_FULL, place, now} end
  if moving then moving.need(TOKEN) end
  sequence = next_place(now)
  redis.call('RPUSH', QUEUE, entry)
end
-- The owners' processes let more in, and do not know yet that others wait. Readers are told with each
-- question of the first who waits, as they do not ask by themselves.
if place == 0 and (mode == 'read' or sequence > 0 and writer_hears()) then
  tell_want(sequence == 0)
end
redis.call('PEXPIRE', QUEUE, QUEUE_KEPT)
note_lease(ARGV[3], id)
if place < FAR then return {sequence, ask_in(left or 0), now} end
return {sequence, ask_in(left or 0), now, 0, place}
