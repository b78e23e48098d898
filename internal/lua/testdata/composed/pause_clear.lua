--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local PAUSE = 'latchkey_pause:{' .. NAME .. '}'
if moving then moving.need(PAUSE) end
if redis.call('HGET', PAUSE, 'resumed') == ARGV[1] then return 1 end
redis.call('HDEL', PAUSE, 'since', 'until', 'by', 'why') -- first: Redis never refuses it for lack of memory, nor what follows
redis.call('HSET', PAUSE, 'resumed', ARGV[1])
redis.call('PEXPIRE', PAUSE, '600000')
return 1
