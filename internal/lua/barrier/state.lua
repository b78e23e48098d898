-- state: the state of a barrier, which every script of a barrier reads first. This file also breaks the
-- generation when a lease is over: that of a party that waits, or of a member, which may be at work.
--
-- NAME      HASH   barrier: 1
--                  generation, first, bad: see shared/generation.lua
--                  phase: w waiting, a the action runs, b broken
--                  parties: of this generation, 0 while nobody has arrived
--                  waiting: how many have arrived
--                  leader: id of the last arrival, while the action runs
--                  lease: the longest that anybody has asked for, in ms
--                  c:<client id>: how many arrivals are that client's
-- ARRIVALS  ZSET   client id -> ms since the epoch at which the lease of its arrivals ends
-- DONE      prefix of the records of shared/once.lua: <generation>:<index> of an arrival, or why
--           there is none; that a membership has ended
-- MEMBERS   ZSET   <client id>:<number> of a membership -> ms since the epoch at which its lease ends
-- NEWS      channel on which all who wait hear of changes
--
-- While a script runs, the phase may also be n: there is no barrier yet.
-- keys NEWS ARRIVALS DONE MEMBERS
-- include shared/generation.lua
-- include shared/declared.lua

local KEPT = '172800000' -- ms that an idle barrier is remembered: two days, longer than any lease

local barrier
do
  local f = redis.call('HMGET', NAME, 'generation', 'first', 'bad', 'phase', 'parties', 'waiting',
    'leader', 'barrier', 'lease')
  barrier = {
    generation = number_of(f[1]), first = number_of(f[2]), bad = f[3] or '', phase = f[4] or 'n',
    parties = number_of(f[5], 9), waiting = number_of(f[6], 9), leader = f[7] or '',
    lease = number_of(f[9], 10),
  }
  local numbers = barrier.generation and barrier.first and barrier.parties and barrier.waiting
    and barrier.lease
  if not (numbers and is_list(barrier.bad) and string.find(barrier.phase, '^[nwab]$'))
    or f[8] ~= '1' and (f[8] or redis.call('EXISTS', NAME) == 1) then
    error('WRONGTYPE ' .. NAME .. ' holds data that is not a barrier')
  end
end

-- When the hash was lost, the longest lease is not known any more. It is no less than what its members have
-- left.
if barrier.phase == 'n' and not (moving and moving.lacks(MEMBERS)) then
  local last = redis.call('ZRANGE', MEMBERS, '-1', '-1', 'WITHSCORES')[2]
  barrier.lease = math.max(0, (tonumber(last or '0') or 0) - now)
  if barrier.lease > 1e10 then barrier.lease = 0 end
end

-- Without its arrivals the generation would be taken for broken.
if moving and barrier.waiting > 0 then moving.need(ARRIVALS) end

local function is_waiting() return barrier.phase == 'w' or barrier.phase == 'a' end

-- How many arrivals are a client's.
local function arrived(client)
  local n = number_of(redis.call('HGET', NAME, 'c:' .. client), 9)
  return n or error('WRONGTYPE ' .. NAME .. ' holds data that is not a barrier')
end

-- ms until the first lease of a set ends; nil if the set is empty.
local function first_end(set)
  if moving and moving.lacks(set) then return nil end
  local first = redis.call('ZRANGE', set, '0', '0', 'WITHSCORES')
  return first[2] and (tonumber(first[2]) or math.huge) - now
end

-- ms until the first lease ends that breaks the generation by its end; -1: there is none.
local function ends()
  if not is_waiting() then return -1 end
  local first = first_end(MEMBERS) or math.huge
  if barrier.waiting > 0 then first = math.min(first, first_end(ARRIVALS) or 0) end
  return first < math.huge and first or -1
end

-- Writes a state in which nobody waits. Members stay members.
local function clear(phase)
  -- Arrivals may be left of a barrier that was lost. Foreign data stays.
  local here = not (moving and moving.lacks(ARRIVALS))
  if here and (barrier.waiting > 0 or redis.call('TYPE', ARRIVALS).ok == 'zset') then
    redis.call('DEL', ARRIVALS)
  end
  redis.call('PERSIST', NAME) -- Redis never refuses it for lack of memory, nor what follows
  barrier.phase, barrier.parties, barrier.waiting, barrier.leader = phase, 0, 0, ''
  redis.call('HSET', NAME, 'barrier', '1',
    'generation', decimal(barrier.generation), 'first', decimal(barrier.first), 'bad', barrier.bad,
    'phase', phase, 'parties', '0', 'waiting', '0', 'leader', '', 'lease', decimal(barrier.lease))
  redis.call('PEXPIRE', NAME, KEPT)
  -- The fields go that say whose arrivals there were. The key itself stays: in a slot that is moving, nobody
  -- can make a key again that is gone.
  local gone = {}
  for _, field in ipairs(redis.call('HKEYS', NAME)) do
    if string.sub(field, 1, 2) == 'c:' then gone[#gone + 1] = field end
  end
  for i = 1, #gone, 1000 do redis.call('HDEL', NAME, unpack(gone, i, math.min(i + 999, #gone))) end
end

-- Begins the next generation.
local function advance()
  succeed(barrier)
  clear('w')
end

local function break_generation(why)
  spoil(barrier, why)
  clear('b')
end

local SHORT = 2000 -- ms: nobody waits longer without asking
local sooner = false -- a lease ends before everybody who waits asks again

-- Gives an id in a set a lease from now on. before: its score, where the caller knows it.
local function extend(set, id, ms, before)
  if moving then moving.need(set) end
  before = before or redis.call('ZSCORE', set, id)
  local after = now + ms + 1
  redis.call('ZADD', set, decimal(after), id)
  redis.call('PEXPIRE', set, KEPT)
  if tonumber(ms) > barrier.lease then
    barrier.lease = tonumber(ms)
    if barrier.phase ~= 'n' then redis.call('HSET', NAME, 'lease', ms) end -- otherwise clear writes it
  end
  if tonumber(ms) < SHORT and not (before and tonumber(before) <= after) then sooner = true end
end

local DEAD = 'dead' -- the record of a membership whose lease was over

-- Begins a membership, or renews its lease. A membership that was ended does not begin again: this may be a
-- late copy. A dead one begins again only when asked: a party has asked for it. Otherwise a client that comes
-- back from where it could not reach Redis would be a member although nobody there takes part any more.
local function belong(id, ms, asked)
  if moving then moving.need(MEMBERS) end
  local before = redis.call('ZSCORE', MEMBERS, id)
  if not before then
    if moving then moving.need(DONE .. ':' .. id) end
    local record = redis.call('GET', DONE .. ':' .. id)
    if record and not (asked and record == DEAD) then return end
    if record then redis.call('DEL', DONE .. ':' .. id) end
  end
  extend(MEMBERS, id, ms, before)
end

-- Sends the state to all who wait, so that nobody has to ask. Comes after the last write. When Redis does not
-- allow the message, what was done stays done.
local function tell()
  redis.pcall(VERB, NEWS, table.concat({
    '1 r', barrier.phase, decimal(barrier.generation), decimal(barrier.first), decimal(ends()), barrier.bad,
  }, ' '))
end

local over = false -- this script has ended a generation, and no message says so yet
do
  local member = first_end(MEMBERS)
  -- While the slot is moving, nobody is declared dead: the record of it might not be made.
  local dead = member and member <= 0 and not moving
  if dead then
    local gone = redis.call('ZRANGEBYSCORE', MEMBERS, '-inf', decimal(now))
    local wanted = {}
    for _, id in ipairs(undeclared and gone or {}) do
      if undeclared(DONE .. ':' .. id) then wanted[#wanted + 1] = id end
    end
    if wanted[1] then return {err = demand(wanted)} end
    -- First: Redis never refuses it for lack of memory, nor what follows.
    redis.call('ZREMRANGEBYSCORE', MEMBERS, '-inf', decimal(now))
    for _, id in ipairs(gone) do redis.call('SET', DONE .. ':' .. id, DEAD, 'PX', KEPT) end
  end
  if is_waiting() and (dead or barrier.waiting > 0 and (first_end(ARRIVALS) or 0) <= 0) then
    break_generation('l')
    over = true
  end
end

-- Sends the state to those who wait when they would not read it in time.
local function tell_what_changed()
  if over or sooner and barrier.waiting > 0 then tell() end
end

-- The state in a reply: {phase, generation, first, bad, ms until the first lease ends (-1: never), waiting,
-- parties}.
local function round()
  return {
    barrier.phase, barrier.generation, barrier.first, barrier.bad, ends(), tostring(barrier.waiting),
    barrier.parties,
  }
end
