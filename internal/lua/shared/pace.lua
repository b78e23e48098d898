-- pace: how soon those who wait must ask again, because a lease ends that may be before them. Uses what
-- shared/inbox.lua defines.
--
-- The pace is the shortest lease, in ms, of all who wait and of all who were granted something while others
-- waited. When it is less than SHORT, a key beside the queue keeps it for as long as the queue is kept. No
-- waiter sleeps longer than the pace. So whoever is next finds a lease at its end: it does not matter who
-- held the lease, or who left in between. A new waiter gets the pace in its reply. When the pace becomes
-- shorter, a message tells the others.
-- keys QUEUE
-- inline keys PACE

-- Sends a message of a kind to the clients that wait, and returns the first entry of each, by client. more:
-- what stands behind the owner's number. asker: an owner id whose client gets this by the reply of the
-- script, and is left out; may be nil. Of a very long queue only the first LISTENERS entries count. One
-- client that asks is enough, since its question serves whoever is next.
local LISTENERS = 1000
local function tell_waiting(kind, more, asker)
  local told, own = {}, asker and string.match(asker, '^[^:]+')
  if moving and moving.lacks(QUEUE) then return told end
  for _, entry in ipairs(redis.pcall('LRANGE', QUEUE, 0, LISTENERS - 1)) do -- nobody waits in foreign data
    local client, number = string.match(entry, '^1:([^:]+):(%d+):')
    if client and client ~= own and not told[client] then
      told[client] = entry
      tell(client, kind, number .. more)
    end
  end
  return told
end

-- Notes a lease that somebody begins while others may wait. asker: as in tell_waiting. Errors are ignored,
-- because what was done before must not stay half done: then waiters sleep for SHORT at most.
local function note_lease(lease, asker)
  if tonumber(lease) >= SHORT then return end
  local before = redis.pcall('GET', PACE)
  before = type(before) == 'string' and tonumber(before)
  if before and before <= tonumber(lease) then
    -- Only those who have this lease keep the pace alive: they ask as often as that.
    if before == tonumber(lease) then redis.pcall('PEXPIRE', PACE, QUEUE_KEPT) end
    return
  end
  -- The pace is none of the COMPANIONS, since it rarely exists. So while the slot is moving it may be on the
  -- other side although all of these are here. A command over both keys is refused then.
  if SLOTS and type(redis.pcall('EXISTS', NAME, PACE)) ~= 'number' then return end
  redis.pcall('SET', PACE, lease, 'PX', QUEUE_KEPT)
  tell_waiting('l', ' ' .. lease, asker)
end

-- In how many ms a waiter must ask again. ms: until the lease ends that it waits for; -1: that never ends.
local function ask_in(ms)
  local pace = redis.pcall('GET', PACE)
  pace = type(pace) == 'string' and tonumber(pace)
  if pace and (ms < 0 or pace < ms) then return math.max(pace, 10) end -- no lease is shorter than 10 ms
  return ms
end

