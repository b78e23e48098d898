-- state: the state of a latch, which every script of a latch reads first. Redisson knows nothing of
-- generations: where a Java process has changed the count, this file brings the record up to date.
--
-- NAME    STRING the count that remains (Redisson's); absent unless the latch is shut
-- RECORD  HASH   generation, first, bad: see shared/generation.lua
--                phase: s shut, o open, d deleted
--                ttl: the latch's time to live in ms, 0 for none
--                until: ms since the epoch. Then a shut latch expires (0: never), and an open one
--                is as if it had never been set
--                p:<participant>: has counted
--                The key stays a while longer, for those who hear of it late
-- DONE    prefix of the records of shared/once.lua
--
-- While a script runs, the phase may also be n (there is no record) and x (expired).
-- keys RECORD
-- include shared/generation.lua

local NEW_COUNT, ZERO_COUNT = '1', '0' -- what Redisson publishes
-- ms that a latch without a time to live stays open, and ms that any latch is known after its end.
local DAY, KEPT = 86400000, 600000
-- ms by which the count outlives its time. So the count is never absent for that reason while the record says
-- shut.
local MARGIN = 1000

if moving then moving.need(RECORD) end
local count = redis.call('GET', NAME)
if count and not (string.find(count, '^[1-9]%d*$')
    and (#count < 19 or #count == 19 and count <= '9223372036854775807')) then
  error('WRONGTYPE ' .. NAME .. ' holds data that is not a latch')
end
local latch
do
  local f = redis.call('HMGET', RECORD, 'generation', 'first', 'bad', 'phase', 'ttl', 'until')
  latch = {
    generation = number_of(f[1]), first = number_of(f[2]), bad = f[3] or '', phase = f[4] or 'n',
    ttl = number_of(f[5]), ends = number_of(f[6]),
  }
  if not (latch.generation and latch.first and latch.ttl and latch.ends
      and is_list(latch.bad) and string.find(latch.phase, '^[nsod]$'))
    or latch.ttl > 4e12 or f[1] == false and redis.call('EXISTS', RECORD) == 1 then
    error('WRONGTYPE ' .. RECORD .. ' holds data that is not of a latch')
  end
end

-- Forgets who has counted. The record itself stays: in a slot that is moving, nobody can make a key again
-- that is gone.
local function forget_participants()
  local all = redis.call('HKEYS', RECORD)
  for i = 1, #all, 1000 do
    local gone = {}
    for j = i, math.min(i + 999, #all) do
      if string.sub(all[j], 1, 2) == 'p:' then gone[#gone + 1] = all[j] end
    end
    if #gone > 0 then redis.call('HDEL', RECORD, unpack(gone)) end
  end
end

-- Begins a generation that is shut. Its count is in Redis, or the caller writes it next.
local function shut(ttl)
  if latch.phase == 'x' then spoil(latch, 'x') end
  succeed(latch)
  latch.phase, latch.ttl = 's', ttl
  latch.ends = ttl > 0 and now + ttl or 0
  redis.call('PERSIST', RECORD) -- first: Redis never refuses it for lack of memory, nor what follows
  forget_participants()
  redis.call('HSET', RECORD, 'generation', decimal(latch.generation), 'first', decimal(latch.first),
    'bad', latch.bad, 'phase', 's', 'ttl', decimal(ttl), 'until', decimal(latch.ends))
  -- After its end, the record says for ttl + KEPT that the latch expired.
  if ttl > 0 then redis.call('PEXPIRE', RECORD, decimal(2 * ttl + KEPT)) end
end

-- Records that the generation is open.
local function open()
  local stays = latch.ttl > 0 and latch.ttl or DAY
  latch.phase, latch.ends = 'o', now + stays
  -- First: Redis never refuses it for lack of memory, nor what follows.
  redis.call('PEXPIRE', RECORD, decimal(stays + KEPT))
  redis.call('HSET', RECORD, 'phase', 'o', 'until', decimal(latch.ends))
end

-- A latch that has more time left than it had at its beginning got that time before the server's clock was
-- set back. It is cut.
do
  local lasts = latch.ttl > 0 and latch.ttl or DAY
  if (latch.phase == 's' or latch.phase == 'o') and latch.ends > now + lasts then
    latch.ends = now + lasts
    -- First: Redis never refuses it for lack of memory, nor what follows.
    redis.call('PEXPIRE', RECORD, decimal(2 * lasts + KEPT))
    redis.call('HSET', RECORD, 'until', decimal(latch.ends))
    if redis.call('PTTL', NAME) > lasts + MARGIN then
      redis.call('PEXPIRE', NAME, decimal(lasts + MARGIN))
    end
  end
end

if latch.phase == 'o' and now >= latch.ends then
  latch.phase = 'd'
elseif latch.phase == 's' and latch.ends > 0 and now >= latch.ends then
  latch.phase = 'x' -- expired
  if now >= latch.ends + latch.ttl then
    spoil(latch, 'x')
    latch.phase = 'd'
  end
  -- What is left is the old count, unless it has no time to live: then a Java process has set a new one.
  if redis.call('PTTL', NAME) ~= -1 then count = false end
elseif latch.phase == 's' and not count then
  open() -- a Java process has counted it down, or deleted it: both release its waiters
end
if count and latch.phase ~= 's' then shut(0) end -- a Java process has set it

-- The state in a reply: {phase, generation, first, bad, ms until the latch expires (-1: never), count}.
local function round()
  local ends = latch.phase == 's' and latch.ends > 0 and latch.ends - now or -1
  return {latch.phase, latch.generation, latch.first, latch.bad, ends, latch.phase == 's' and count or '0'}
end
