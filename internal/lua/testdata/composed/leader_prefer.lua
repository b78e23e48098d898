--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local RECORD = 'latchkey_leader:{' .. NAME .. '}'
local NEWS = 'latchkey_leader:{' .. NAME .. '}'
local RECORD_KEPT = '86400000' -- ms
if moving then moving.need(RECORD) end
local said = redis.call('HMGET', RECORD, 'token', 'who', 'since')
if said[1] and not (#said[1] == 16 and string.find(said[1], '^%d+$') and said[1] <= '9007199254740990'
    and said[2] and said[3] and #said[3] == 16 and string.find(said[3], '^%d+$')) then
  error('WRONGTYPE ' .. RECORD .. ' holds data that is not of a leader')
end
local function publish() redis.pcall(VERB, NEWS, '1') end
local now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
redis.call('HSET', RECORD, 'p:' .. ARGV[1], string.sub(now, 1, 13))
redis.call('PEXPIRE', RECORD, RECORD_KEPT)
return 1
