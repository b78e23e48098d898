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
local INBOX = 'latchkey_inbox:'
local SHORT = 2000
local OUTLIVES = 1000
local QUEUE_KEPT = '60000'
local counted = {}
local function alive(client)
  if counted[client] == nil then
    local reply = redis.pcall('PUBSUB', NUMSUB, INBOX .. client)
    counted[client] = reply.err ~= nil or reply[2] > 0
  end
  return counted[client]
end
local function tell(client, kind, text)
  return redis.pcall(VERB, INBOX .. client, '1 ' .. kind .. ' ' .. text .. ' ' .. NAME)
end
local function tell_grant(client, kind, number, text, reserved, others, now, short)
  tell(client, kind, number .. ' ' .. text .. ' ' .. reserved .. ' ' .. others .. ' ' .. now .. ' ' .. short)
end
local PAUSE = 'latchkey_pause:{' .. NAME .. '}'
local PAUSE_ASKED = 10000 -- ms after which to look again at most: somebody may have resumed the name
local never_paused = moving and moving.gone(PAUSE)
local function paused_for(moment)
  local ends = not never_paused and redis.call('HGET', PAUSE, 'until')
  if not ends then return 0 end
  if #ends > 16 or not string.find(ends, '^%d+$') then error('WRONGTYPE ' .. PAUSE .. ' holds data that is not of a pause') end
  if ends == '0' then return PAUSE_ASKED end
  return math.max(0, math.min(PAUSE_ASKED, math.ceil((ends - moment) / 1000)))
end
local now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
if said[1] and said[1] > ARGV[2] then return {-1, said[1]} end
local paused = paused_for(tonumber(now))
if paused > 0 then return {3, paused} end
local function better_waits(at)
  local marks, any = redis.call('HGETALL', RECORD), false
  local marked = {}
  for i = 1, #marks, 2 do
    local client = string.match(marks[i], '^p:(.+)$')
    if client then marked[client], any = tonumber(marks[i + 1]) or 0, true end
  end
  if not any or moving and moving.lacks(QUEUE) then return false end
  local found = false
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, 9999)) do
    local client = string.match(entry, '^1:([^:]+):')
    if client and marked[client] and alive(client) then found, marked[client] = true, at end
  end
  for client, since in pairs(marked) do
    if at - since > 60000 then redis.call('HDEL', RECORD, 'p:' .. client) end
  end
  return found
end
local waits = ARGV[4] == '0' and better_waits(math.floor(now / 1000))
if waits and ARGV[5] == '1' then return {0, '0'} end
local since = said[1] == ARGV[2] and said[3] or now
redis.call('HSET', RECORD, 'token', ARGV[2], 'who', ARGV[3], 'since', since)
redis.call('PEXPIRE', RECORD, RECORD_KEPT)
if said[1] ~= ARGV[2] then publish() end
return {waits and 2 or 1, since}
