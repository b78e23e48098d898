-- turns: how processes of ours and of Redisson take turns at a lock or a semaphore. It is part of a script
-- only where a client asks for that.
--
-- A waiter of Redisson stands in no queue. It asks when a message says that something was released, or when
-- the lease is over that it has read. So it never gets what a release grants to a waiter of ours. Therefore
-- some releases grant nothing: they leave the lock free, say so, and for a moment processes of ours keep
-- back. A lock that is left free like this is Redisson's turn.
--
-- After that anybody may take it. Processes of ours hear each release of Redisson's while they wait. The one
-- that asks next says how many it has heard, and so many turns are ours then, before the next of theirs.
--
-- TURNS     STRING how many turns are ours before one of Redisson's, with the one that is under way; missing:
--                  one. o: it is Redisson's turn; p, q: so it was the last times, and nothing was seen of it.
--                  x: it was so the next time too, as when its processes are stopped: for PAUSE all are ours.
--                  Others: see rwlock/leave.lua
-- HOLDOFF   STRING exists as long as processes of ours keep back; of a semaphore, how many permits are free
-- RELEASED  channel on which Redisson's processes say, and hear, that something was released. They send a
--                  number; ours has a 0 before it, which they do not mind
-- EAR       channel to which each client of ours listens that listens to RELEASED, and nobody else. So those
--                  who listen to RELEASED alone are Redisson's waiters
--
-- The file in front of this one defines next_fair, which returns the channel of another waiter of Redisson,
-- or is nil.
-- keys RELEASED EAR TURNS HOLDOFF
-- include shared/kept.lua

local PAUSE, NEAR = '500', '1000' -- ms

-- How many turns are ours, with the one that is under way or begins. math.huge: no process of Redisson waits,
-- nor has of late, or it does not come. While a slot moves all are ours, as what is kept here may be on the
-- other side.
local ours, waits, said
local function our_turns()
  if ours then return ours end
  ours = math.huge
  -- inline shared/theirs.lua
  waits = theirs or next_fair and next_fair() and true or false
  said = not moving and redis.pcall('GET', TURNS)
  -- A pause that is longer than any was begun before the server's clock was set back.
  if said == 'x' and redis.call('PTTL', TURNS) > tonumber(PAUSE) then said = false end
  if said ~= 'x' and not moving and (waits or said) then
    ours = type(said) == 'string' and tonumber(said) or 1
  end
  return ours
end

local function redisson_waits()
  our_turns()
  return waits
end

local AFTER = {o = 'p', p = 'q', q = 'x'}

-- Counts a turn of ours as over, and reports whether the next one is Redisson's: then it is kept for that,
-- and the caller leaves it free.
local function is_redissons()
  if our_turns() == math.huge or not waits then return false end
  ours = ours - 1
  if ours > 0 then
    redis.pcall('SET', TURNS, ours, 'PX', NEAR)
    return false
  end
  local theirs = AFTER[said] or 'o'
  if theirs == 'x' then
    ours = math.huge
    redis.pcall('SET', TURNS, 'x', 'PX', PAUSE)
    return false
  end
  -- Both are hints, and Redis may refuse the first for lack of memory.
  redis.pcall('SET', HOLDOFF, '1', 'PX', KEPT)
  redis.pcall('SET', TURNS, theirs, 'PX', NEAR)
  return true
end

-- How many of the tokens for further turns of a process fit into our turns. One of Redisson's that has just
-- had its turn will wait again.
local function within_turns(block)
  local most = block > 0 and our_turns() or math.huge
  if most == math.huge then return block end
  block = math.max(math.min(block, most - 1), 0)
  if block > 0 then
    ours = most - block
    redis.pcall('SET', TURNS, ours, 'PX', NEAR)
  end
  return block
end

-- Says that something was released. A message is a hint, and nobody can act on it before the script has
-- ended.
local function announce(text)
  redis.pcall(VERB, RELEASED, text)
  local other = next_fair and next_fair()
  if other then redis.pcall(VERB, other, '0') end
end
