-- acquire: take the lock, or join its queue. Safe to repeat: the owner id is for one tenure, and an owner that asks again
-- gets the token it has, with its whole lease. It is also how a waiter asks again ("re-check") and how it confirms a grant.
--
-- KEYS  1 lock     HASH   <owner id> -> 1, token -> t<number>/<longest lease in ms> or
--                         t<number>+<numbers reserved>/<longest lease>, short -> s<ms since the epoch> (a grant not renewed yet)
--       2 queue    LIST   of 1:<client id>:<number>:<lease in ms>:<block>, the head is next
--       3 token    STRING last number handed out or reserved
-- ARGV  1 owner id         <client id>:<number unique within the client>
--       2 inbox prefix     a client's inbox is this followed by its id
--       3 publish verb     PUBLISH or SPUBLISH
--       4 floor            highest token of this name that this client has seen
--       5 lease            ms
--       6 mode             try, with a deadline or without; first; again: see attempt.lua
--       7 longest queue    entries
--       8 block            how many tokens to reserve when the lock is granted from the queue, for holds of the same
--                          process; 0: none
-- Reply token                         (integer) the caller owns the lock
--       {0, token, reserved, others}  so it does, with further tokens; others: 1 when somebody waits, else 0
--       {sequence, ends, now}         queued; sequence is 0 when it was queued before; ends: ms until it must ask again: the
--                                     holder's lease ends then, or another one may (queue.lua), -1 when none does; now:
--                                     server time in microseconds
--       {-1, ends, now}               held by somebody else (mode try)
--       {-2, length, now}             the queue is full
--       {-6, 0, now}                  too late: nothing was done
-- include token.lua
-- include attempt.lua

local mode, late = parse_mode(ARGV[6])
if late then return {-6, 0, micros()} end

if not moving and redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  local token, text = next_token(micros())
  redis.call('HSET', KEYS[1], ARGV[1], '1', 'token', 't' .. text .. '/' .. ARGV[5])
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  return token
end

-- include lease.lua
-- include grant.lua
-- include foreign.lua

local held = redis.call('HMGET', KEYS[1], ARGV[1], 'token', 'short')
local owned, reserved, longest = parse_token(held[2])
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
    if #former > 1000 then return not_a_lock() end -- too many to be deleted in one step
    for _, field in ipairs(former) do client = string.match(field, '^([^:]+):%d+$') or client end
    for _, entry in ipairs(of_unresponsive(client)) do redis.call('LREM', KEYS[2], 1, entry) end
  end
end

local entry = '1:' .. ARGV[1] .. ':' .. ARGV[5] .. ':' .. ARGV[8]
if free then
  local token, more = grant(entry)
  if not token then -- nobody who lives was queued
    local text
    token, text, more = next_token(now)
    own(ARGV[1], ARGV[5], text, more)
  end
  if token > 0 then return owner_reply(token, more) end
  reserved = select(2, parse_token(redis.call('HGET', KEYS[1], 'token')))
  left = lease_left(now)
end

if mode == 'try' then return {-1, left or 0, now} end

if moving then moving.need(KEYS[2]) end
local sequence = 0
if mode == 'first' or not redis.call('LPOS', KEYS[2], entry) then
  local length = redis.call('LLEN', KEYS[2])
  if length >= tonumber(ARGV[7]) then return {-2, length, now} end
  if moving then moving.need(KEYS[3]) end
  sequence = next_token(now)
  redis.call('RPUSH', KEYS[2], entry)
  if length == 0 and reserved > 0 then tell_owner('w') end -- want: it hands on inside, and was not told that others wait
end
redis.call('PEXPIRE', KEYS[2], QUEUE_KEPT)
note_lease(ARGV[5], ARGV[1])
return {sequence, ask_in(left or 0), now}
