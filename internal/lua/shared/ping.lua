-- ping: publishes a health check to a client's inbox, as a script tells of a grant, and counts who hears.
--
-- KEYS  1 any key that the client may use: it says which server
-- ARGV  1 inbox
--       2 message
-- Reply how many have subscribed to the inbox, as scripts see it; -1: the caller may not ask

local subscribers = redis.pcall('PUBSUB', 'NUMSUB', ARGV[1])
redis.call('PUBLISH', ARGV[1], ARGV[2])
return subscribers.err and -1 or subscribers[2]
