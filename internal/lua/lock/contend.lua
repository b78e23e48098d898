-- contend: the second half of an acquire, after lock/take.lua: the lock is owned, or somebody waits for it.
-- Keys,
-- ARGV and replies: as in lock/acquire.lua.
--
-- The file in front of this one defines enqueue(entry), which puts a new entry into the queue. It must write
-- at most once, and only to QUEUE.
-- include lock/take.lua
-- include lock/lease.lua
-- include lock/grant.lua
-- include lock/foreign.lua

local held = redis.call('HMGET', NAME, ARGV[1], 'token', 'short')
local owned, reserved, longest = parse_token(held[2])
if held[1] and owned then
  if held[3] then redis.call('HDEL', NAME, 'short') end
  redis.call('PEXPIRE', NAME, ARGV[3])
  return owner_reply(owned, reserved)
end

local now, left = micros(), nil
local free = redis.call('EXISTS', NAME) == 0
if not free then
  if not owned and not is_lock() then return not_a_lock() end
  left = lease_left(now, longest)
  if held[3] and left == 0 then
    local client
    free, former = true, redis.call('HKEYS', NAME)
    if #former > 1000 then return not_a_lock() end -- too many fields for one HDEL
    for _, field in ipairs(former) do client = string.match(field, '^([^:]+):%d+$') or client end
    for _, entry in ipairs(of_unresponsive(client)) do redis.call('LREM', QUEUE, 1, entry) end
  end
end

local entry = '1:' .. ARGV[1] .. ':' .. ARGV[3] .. ':' .. ARGV[6]
if free then
  local token, more = grant(entry)
  if not token then -- nobody who lives was queued
    local text
    token, text, more = next_token(now)
    own(ARGV[1], ARGV[3], text, more)
  end
  if token > 0 then return owner_reply(token, more) end
  reserved = select(2, parse_token(redis.call('HGET', NAME, 'token')))
  left = lease_left(now)
end

if mode == 'try' then return {-1, left or 0, now} end

if moving then moving.need(QUEUE) end
local sequence = 0
if mode == 'first' or not redis.call('LPOS', QUEUE, entry) then
  local length = redis.call('LLEN', QUEUE)
  if length >= tonumber(ARGV[5]) then return {-2, length, now} end
  if moving then moving.need(TOKEN) end
  sequence = next_token(now)
  enqueue(entry)
  -- The owner's process hands on inside, and does not know yet that others wait: w is for want.
  if length == 0 and reserved > 0 then tell_owner('w') end
end
redis.call('PEXPIRE', QUEUE, QUEUE_KEPT)
note_lease(ARGV[3], ARGV[1])
return {sequence, ask_in(left or 0), now}
