-- queue: the list of waiters, and the inboxes of their clients. Every script that grants includes it.
-- Uses QUEUE, TOKEN and ARGV[1..2] of lock/acquire.lua.
-- keys QUEUE TOKEN INBOX

-- ms that a grant by message lasts until its first renewal. So much time is lost at most when a process stops
-- while it waits. Every client asks again no later than this after its last question.
local SHORT = 2000

-- ms. Waiters ask far more often than this, so only a queue without waiters expires.
local QUEUE_KEPT = '60000'

local counted = {}

-- Whether this server has a subscriber of the client's inbox. The reply of PUBLISH cannot tell that. A
-- primary answers 0 when the subscriber is at a replica, and yet the message is heard; and nobody can take a
-- message back. Where the caller may not ask, it is taken for alive.
local function alive(client)
  if counted[client] == nil then
    local reply = redis.pcall('PUBSUB', NUMSUB, INBOX .. client)
    counted[client] = reply.err ~= nil or reply[2] > 0
  end
  return counted[client]
end

-- Sends a client a message of a kind. The text begins with the number of the owner id that it concerns.
-- A caller who may not publish sends none: whoever waits asks again soon, and all writes were before it.
local function tell(client, kind, text)
  return redis.pcall(VERB, INBOX .. client, '1 ' .. kind .. ' ' .. text .. ' ' .. NAME)
end

-- Tells a waiter that it is an owner now. Its lease is short until its first renewal. now: in decimal digits.
local function tell_grant(client, kind, number, text, reserved, others, now, short)
  tell(client, kind, number .. ' ' .. text .. ' ' .. reserved .. ' ' .. others .. ' ' .. now .. ' ' .. short)
end

-- Tells the waiting clients to ask in ms or sooner. asker is the owner id that gets this by the reply of the
-- script: its client is left out. Of a very long queue only the first LISTENERS entries count. One client
-- that asks is enough, since its question serves whoever is next.
local LISTENERS = 1000
local function tell_waiting(ms, asker)
  if moving and moving.lacks(QUEUE) then return end
  local told = {[asker and string.match(asker, '^[^:]+') or ''] = true}
  for _, entry in ipairs(redis.pcall('LRANGE', QUEUE, 0, LISTENERS - 1)) do -- nobody waits in foreign data
    local client, number = string.match(entry, '^1:([^:]+):(%d+):')
    if client and not told[client] then
      told[client] = true
      tell(client, 'l', number .. ' ' .. ms)
    end
  end
end

-- The pace is the shortest lease, in ms, of all who wait and of all who were granted something while others
-- waited. When it is less than SHORT, a key beside the queue keeps it for as long as the queue is kept. No
-- waiter sleeps longer than the pace. So whoever is next finds a lease at its end: it does not matter who
-- held the lease, or who left in between. A new waiter gets the pace in its reply. When the pace becomes
-- shorter, a message tells the others.
local function pace_key() return 'latchkey_pace' .. string.sub(QUEUE, 15) end -- after 'latchkey_queue'

-- Notes a lease that somebody begins while others may wait. asker: as in tell_waiting. Errors are ignored,
-- because what was done before must not stay half done: then waiters sleep for SHORT at most.
local function note_lease(lease, asker)
  if tonumber(lease) >= SHORT then return end
  local key = pace_key()
  local before = redis.pcall('GET', key)
  before = type(before) == 'string' and tonumber(before)
  if before and before <= tonumber(lease) then
    -- Only those who have this lease keep the pace alive: they ask as often as that.
    if before == tonumber(lease) then redis.pcall('PEXPIRE', key, QUEUE_KEPT) end
    return
  end
  if moving and moving.lacks(key) then return end
  redis.pcall('SET', key, lease, 'PX', QUEUE_KEPT)
  tell_waiting(lease, asker)
end

-- In how many ms a waiter must ask again. ms: until the lease ends that it waits for; -1: that never ends.
local function ask_in(ms)
  local pace = redis.pcall('GET', pace_key())
  pace = type(pace) == 'string' and tonumber(pace)
  if pace and (ms < 0 or pace < ms) then return math.max(pace, 10) end -- no lease is shorter than 10 ms
  return ms
end

-- The entries of a client that does not react: it was granted something by message, and did not renew it
-- once. The caller drops them, because each would cost as much time again. A client that lives after all
-- finds its entries gone when it asks, and queues again.
local function of_unresponsive(client)
  local found = {}
  if not client or client == string.match(ARGV[1], '^[^:]+')
    or moving and moving.lacks(QUEUE) then return found end
  local prefix = '1:' .. client .. ':'
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, -1)) do
    if string.sub(entry, 1, #prefix) == prefix then found[#found + 1] = entry end
  end
  return found
end
