-- contend: the second half of an acquire, after lock/take.lua: the lock is owned, or somebody waits for it.
-- Keys, ARGV and replies: as in lock/acquire.lua.
--
-- The file in front of this one defines enqueue(entry), which puts a new entry into the queue and returns how
-- many there are. It must write at most once, and only to QUEUE.
-- include shared/attempt.lua
-- include lock/owner.lua
-- include shared/queue.lua
-- include shared/place.lua

local LONGEST = 100000

local mode, late = parse_mode(ARGV[4] or 'first')
if late then return {REPLY_LATE, 0, clock()} end
local block, lingers = string.match(ARGV[5] or '0', '^(%d+)(l?)$')
local held = fields()
local number, reserved, longest, may_linger, granted = parse_token(held[2])
if number and held[1] == ARGV[1] then
  redis.call('PEXPIRE', NAME, ARGV[3]) -- first: Redis never refuses it for lack of memory, nor what follows
  if granted then redis.call('HSET', NAME, ARGV[1], (string.gsub(held[2], '!.*', ''))) end
  return owner_reply(number, reserved)
end

local now, left = clock(), nil
local free = not held[1]
local unanswered = false -- whether a client did not react: see shared/queue.lua
if mode == 'again' then
  -- inline shared/asks.lua
end
if held[1] then
  if not is_lock(held) then return not_a_lock() end
  left = lease_left(now, longest, granted)
  if granted and left == 0 then
    free, unanswered, former = true, true, {held[1]}
    local client = string.match(held[1], '^([^:]+):%d+$') or ''
    for _, entry in ipairs(of_unresponsive({[client] = true})) do redis.call('LREM', QUEUE, 1, entry) end
  end
end
-- redisson if kept_back and not held[1] then free, left = false, kept_back end

local entry = '1:' .. ARGV[1] .. ':' .. ARGV[3] .. ':' .. block .. lingers
if free then
  local token, more = grant(entry)
  if token == nil then -- nobody who lives was queued
    -- redisson if lingers == 'l' then block = within_turns(tonumber(block)) end
    token, more = next_token(now, lingers == 'l' and tonumber(block) or 0)
    own(ARGV[1], ARGV[3], token, more, lingers)
  end
  if unanswered then
    -- inline shared/call.lua
  end
  if token then return owner_reply(token, more) end
  held = fields()
  number, reserved, longest, may_linger, granted = parse_token(held[2])
  left = lease_left(now, longest, granted)
end

if mode == 'try' then
  -- inline lock/linger.lua
  return {may_linger and ask_owner(held[1]) and REPLY_LINGERS or REPLY_BUSY, left or 0, now}
end

if moving then moving.need(QUEUE) end
local sequence
if mode == 'first' or not redis.call('LPOS', QUEUE, entry) then
  local length = redis.call('LLEN', QUEUE)
  if length >= tonumber(ARGV[6] or LONGEST) then return {REPLY_FULL, length, now} end
  if moving then moving.need(TOKEN) end
  sequence = next_place(now)
  enqueue(entry)
  -- The owner's process hands on inside, and does not know yet that others wait: w is for want.
  if length == 0 and (reserved > 0 or may_linger) then tell_owner(held[1], 'w') end
else
  local last = redis.pcall('GET', TOKEN)
  sequence = type(last) == 'string' and #last == 16 and string.find(last, '^%d+$') and -last or 0
end
redis.call('PEXPIRE', QUEUE, QUEUE_KEPT)
note_lease(ARGV[3], ARGV[1])
return {sequence, ask_in(left or 0), now}
