--!df flags=allow-undeclared-keys
local subscribers = redis.pcall('PUBSUB', 'NUMSUB', ARGV[1])
redis.call('PUBLISH', ARGV[1], ARGV[2])
return subscribers.err and -1 or subscribers[2]
