-- contend: the second half of an acquire, after lock/take.lua: the lock is owned, or somebody waits for it.
-- KEYS,
-- ARGV and replies: as in lock/acquire.lua.
--
-- The file in front of this one defines enqueue(entry), which puts a new entry into the queue. It must write
-- at most once, and only to KEYS[2].
-- include lock/take.lua
-- include lock/lease.lua
-- include lock/grant.lua
-- include lock/foreign.lua
-- include lock/linger.lua

local held = redis.call('HMGET', KEYS[1], ARGV[1], 'token', 'short')
local owned, reserved, longest, may_linger = parse_token(held[2])
if held[1] and owned then
  if held[3] then redis.call('HDEL', KEYS[1], 'short') end
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  return owner_reply(owned, reserved)
end

local now, left = micros(), nil
local free = redis.call('EXISTS', KEYS[1]) == 0
if not free then
  if not owned and not is_lock() then return not_a_lock() end
  left = lease_left(now, longest)
  if held[3] and left == 0 then
    local client
    free, former = true, redis.call('HKEYS', KEYS[1])
    if #former > 1000 then return not_a_lock() end -- too many fields for one HDEL
    for _, field in ipairs(former) do client = string.match(field, '^([^:]+):%d+$') or client end
    for _, entry in ipairs(of_unresponsive(client)) do redis.call('LREM', KEYS[2], 1, entry) end
  end
end

local entry = '1:' .. ARGV[1] .. ':' .. ARGV[5] .. ':' .. ARGV[8]
if free then
  local token, more = grant(entry)
  if not token then -- nobody who lives was queued
    local text
    token, text, more = next_token(now, lingers and tonumber(string.sub(ARGV[8], 1, -2)))
    own(ARGV[1], ARGV[5], text, more, lingers)
  end
  if token > 0 then return owner_reply(token, more) end
  owned, reserved, longest, may_linger = parse_token(redis.call('HGET', KEYS[1], 'token'))
  left = lease_left(now)
end

if mode == 'try' then return {may_linger and ask_owner() and -9 or -1, left or 0, now} end

if moving then moving.need(KEYS[2]) end
local sequence = 0
if mode == 'first' or not redis.call('LPOS', KEYS[2], entry) then
  local length = redis.call('LLEN', KEYS[2])
  if length >= tonumber(ARGV[7]) then return {-2, length, now} end
  if moving then moving.need(KEYS[3]) end
  sequence = next_token(now)
  enqueue(entry)
  -- The owner's process hands on inside, and does not know yet that others wait: w is for want.
  if length == 0 and (reserved > 0 or may_linger) then tell_owner('w') end
end
redis.call('PEXPIRE', KEYS[2], QUEUE_KEPT)
note_lease(ARGV[5], ARGV[1])
return {sequence, ask_in(left or 0), now}
