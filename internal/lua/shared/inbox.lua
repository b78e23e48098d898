-- inbox: how a script tells the clients of those who wait, and finds out whether they live. Every script that
-- grants includes it.
-- keys INBOX

-- ms that a grant by message lasts until its first renewal. So much time is lost at most when a process stops
-- while it waits. Every client asks again no later than this after its last question.
local SHORT = 2000

-- ms. The key of a lock outlives a short lease by so much, so that whoever asks after the end sees that no
-- renewal came.
local OUTLIVES = 1000

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
