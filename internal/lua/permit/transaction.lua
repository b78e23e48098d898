-- transaction: what a script finds of a semaphore is read once and changed in memory; commit writes it and
-- sends the messages. So many requests share the commands that they cost. A script that fails before commit
-- has changed no permit. A script whose writes Redis refuses (READONLY, OOM) has told nobody anything. Uses
-- NAME, QUEUE, TOKEN and CHANNEL, and ARGV[1..2], of permit/trade.lua.
--
-- The store in front of this file, permit/leased.lua or permit/plain.lua, knows who has which permits. It
-- defines
--   KIND                    kind of the messages that grant
--   COUNTS_HELD             whether it knows how many permits are held
--   acknowledge(client, numbers)  forgets commands of a client that were answered
--   prefetch(owners)        reads at once what many owners hold
--   foresee(look)           ends the script if it must ask for keys (shared/declared.lua) to grant permits
--                           to the first of those who wait
--   FEW, MANY               how many entries of the queue are read at once: at first, and at most
--   DROPS                   how many entries one script drops at most
--   holding(owner)          the record of what an owner holds, nil for nothing
--   change(record, n)       sets how many permits an owner holds
--   take(owner, n, lease, short, turns)  gives permits to an owner that has none, with tokens for so many
--                           further turns (leased permits), and returns the record
--   extend(record, lease)   begins the owner's lease anew; false when the lease is over
--   reclaim(unresponsive)   takes back permits whose lease is over; returns how many, and if more may be left
--   first_end()             ms until the first lease ends, -1 for never
--   out()                   how many permits are held
--   write()                 writes the changes; returns by how much more permits are free then, if it knows
-- include permit/begin.lua

-- In a slot that is moving: ends the script unless it can do all that it may have to, except for the queue.
local function ready()
  if not moving then return end
  moving.need(TOKEN)
  if HOLDERS then
    moving.need(TIMEOUTS)
    moving.need(HOLDERS)
  end
end

-- Whether anybody waits, as far as can be seen here.
local function queued()
  if moving then return not moving.lacks(QUEUE) end
  return redis.call('EXISTS', QUEUE) == 1
end

-- The free permits; nil when nobody has initialised the semaphore.
local free = redis.call('GET', NAME)
if free and not (#free <= 11 and string.find(free, '^-?%d+$')) then
  error('WRONGTYPE ' .. NAME .. ' holds data that is not a semaphore')
end
free = free and tonumber(free) or nil
local found = free   -- the free permits in Redis
local bonus = 0      -- by how much capacity.lua changes their number
local given = false  -- somebody gave permits back
local queue          -- see open_queue; nil while nobody waits, as far as is known
-- redisson -- include permit/leave.lua

local function add(n)
  if free then free = free + n end
  given = given or n > 0
end

-- How many permits there are, held or free.
local function capacity() return (free or 0) + out() end
-- redisson -- include permit/count_all.lua

-- Leaves an owner only so many permits, and reports whether it had any.
local function disown(owner, keep)
  local record = holding(owner)
  if not record then return false end
  if keep < record.n then -- or it is a late copy of a partial release
    add(record.n - keep)
    change(record, keep)
  end
  return true
end

-- Writes all changes, then sends the messages.
local function commit()
  -- Giving back must work when memory is short. Redis never refuses this command, nor what follows it.
  if given then redis.pcall('PEXPIRE', QUEUE, '60000') end
  if last then redis.call('SET', TOKEN, decimal(last), 'PX', known and DAY or HOUR) end
  -- redisson if free then free = free + left_free end
  local freed = write()
  if found then
    local change = freed and freed + bonus or free - found
    if change ~= 0 then free = redis.call('INCRBY', NAME, decimal(change)) end
  elseif free then
    redis.call('SET', NAME, decimal(free))
  end
  if queue then queue.commit() end
  -- redisson -- inline permit/announce.lua
  -- Redisson's waiters try again. All is written, so a user who may not publish must not get an error.
  if given and free and free > 0 then redis.pcall(VERB, CHANNEL, free) end
end

-- The queue. It is made only for a script that needs it: somebody waits, or has to.
local function open_queue()
  if queue then return queue end
  -- include permit/queue.lua
  return queue
end

-- Grants free permits to those who wait, if there are any.
local function grant()
  if queue or queued() then open_queue().grant() end
end

-- For shared/leave.lua: ends what these ids hold, and grants what that makes free.
local function give_back(ids)
  ready()
  prefetch(ids)
  if queued() then foresee(open_queue().look) end
  for _, id in ipairs(ids) do disown(id, 0) end
  -- redisson if given then leave_one() end
  pcall(grant) -- foreign data under a companion's name must not keep permits from being given back
  commit()
end
