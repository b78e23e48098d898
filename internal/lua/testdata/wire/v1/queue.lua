-- queue: the list of those who wait, and the inboxes through which their clients hear. Included by every script that grants.
-- Uses KEYS[1..3] and ARGV[1..3] of acquire.lua.

-- How long a grant by message lasts until its first renewal, in ms: what a process that stopped while it waited can cost.
-- No client asks later than this after its last question, so only a lease that ends sooner has to be announced.
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

-- Tells the first waiter whose inbox hears it that a lease now ends in ms. A hint: whoever misses it asks in time anyway.
local function tell_next(ms)
  for i = 0, 7 do
    local entry = redis.call('LINDEX', KEYS[2], i)
    if not entry then return end
    local client, number = string.match(entry, '^1:([^:]+):(%d+):')
    if client and tell(client, 'l', number .. ' ' .. ms) > 0 then return end
  end
end

-- The entries of a client that was granted something by message and let it run out without one renewal: it does not react, so
-- each of them would cost as much again. They are to be dropped. Should it live after all, it finds out when it asks, and
-- queues again.
local function of_unresponsive(client)
  local found = {}
  if not client or client == string.match(ARGV[1], '^[^:]+') then return found end
  local prefix = '1:' .. client .. ':'
  for _, entry in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    if string.sub(entry, 1, #prefix) == prefix then found[#found + 1] = entry end
  end
  return found
end
