-- queue: the list of those who wait, and the inboxes through which their clients hear. Included by every script that grants.
-- Uses KEYS[1..3] and ARGV[1..3] of acquire.lua.

-- How long a grant by message lasts until its first renewal, in ms: what a process that stopped while it waited can cost.
-- No client asks later than this after its last question.
local SHORT = 2000

local QUEUE_KEPT = '60000' -- ms. Waiters ask far more often: only a queue that nobody waits in expires

local numsub = ARGV[3] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
local counted = {}

-- Whether the server sees a subscriber of this client's inbox. PUBLISH cannot be the test: on a primary it answers 0
-- although a subscriber of a replica hears the message, and a message that is out cannot be called back.
local function alive(client)
  if counted[client] == nil then
    counted[client] = redis.call('PUBSUB', numsub, ARGV[2] .. client)[2] > 0
  end
  return counted[client]
end

-- Sends a message of a kind to a client, about its owner id of that number. Returns how many heard it here.
local function tell(client, kind, text)
  return redis.call(ARGV[3], ARGV[2] .. client, '1 ' .. kind .. ' ' .. text .. ' ' .. KEYS[1])
end

-- Tells a waiter that it is an owner now, with a lease that is short until its first renewal. now: in decimal digits.
local function tell_grant(client, kind, number, text, reserved, others, now, short)
  tell(client, kind, number .. ' ' .. text .. ' ' .. reserved .. ' ' .. others .. ' ' .. now .. ' ' .. short)
end

-- Tells the clients that wait to ask in ms, and no later, but for that of an owner who hears it by the reply. Of a very long
-- queue only the first are told: one that asks is enough, since it serves whoever is next.
local LISTENERS = 1000
local function tell_waiting(ms, asker)
  if moving and moving.lacks(KEYS[2]) then return end
  local told = {[asker and string.match(asker, '^[^:]+') or ''] = true}
  for _, entry in ipairs(redis.call('LRANGE', KEYS[2], 0, LISTENERS - 1)) do
    local client, number = string.match(entry, '^1:([^:]+):(%d+):')
    if client and not told[client] then
      told[client] = true
      tell(client, 'l', number .. ' ' .. ms)
    end
  end
end

-- The shortest lease that anybody has who waits, or was granted while others waited, in ms, if that is less than SHORT. It
-- is kept beside the queue as long as that. Nobody who waits sleeps longer than it: so whoever is next finds a lease at its
-- end, whoever held it, and whoever left in between. Those who come later are told it by the reply, those who wait when it
-- becomes shorter by a message.
local function pace_key() return 'latchkey_pace' .. string.sub(KEYS[2], 15) end -- what is behind latchkey_queue

-- Notes a lease. Others may be waiting; asker: as above. Where that is not allowed, they wait for SHORT at most: what was done
-- before must not be left half done because of it.
local function note_lease(lease, asker)
  if tonumber(lease) >= SHORT then return end
  local key = pace_key()
  local before = redis.pcall('GET', key)
  before = type(before) == 'string' and tonumber(before)
  if before and before <= tonumber(lease) then
    -- Only whoever has that lease keeps it: it asks as often as that.
    if before == tonumber(lease) then redis.pcall('PEXPIRE', key, QUEUE_KEPT) end
    return
  end
  if moving and moving.lacks(key) then return end
  redis.pcall('SET', key, lease, 'PX', QUEUE_KEPT)
  tell_waiting(lease, asker)
end

-- When a waiter must ask again, if the lease it waits for ends in so many ms (-1: never).
local function ask_in(ms)
  local pace = redis.pcall('GET', pace_key())
  pace = type(pace) == 'string' and tonumber(pace)
  if pace and (ms < 0 or pace < ms) then return math.max(pace, 10) end -- no lease is shorter
  return ms
end

-- The entries of a client that was granted something by message and let it run out without one renewal: it does not react, so
-- each of them would cost as much again. They are to be dropped. Should it live after all, it finds out when it asks, and
-- queues again.
local function of_unresponsive(client)
  local found = {}
  if not client or client == string.match(ARGV[1], '^[^:]+') or moving and moving.lacks(KEYS[2]) then return found end
  local prefix = '1:' .. client .. ':'
  for _, entry in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    if string.sub(entry, 1, #prefix) == prefix then found[#found + 1] = entry end
  end
  return found
end
