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
if said[1] ~= ARGV[2] then return 0 end
redis.call('HDEL', RECORD, 'token', 'who', 'since')
publish()
return 1
