--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local TOKEN = 'latchkey_token:{' .. NAME .. '}'
if moving then moving.need(QUEUE) end
local from = 0
if ARGV[3] ~= '' then
  local at = redis.call('LPOS', QUEUE, ARGV[3])
  if not at then return {0} end
  from = at + 1
end
local part = tonumber(ARGV[4])
local now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
local last = redis.pcall('GET', TOKEN)
last = type(last) == 'string' and #last == 16 and string.find(last, '^%d+$') and tonumber(last) or 0
local entries = redis.call('LRANGE', QUEUE, from, from + part - 1)
local reply = {tonumber(now), last, redis.call('LLEN', QUEUE), #entries == part and entries[part] or ''}
local own = '1:' .. ARGV[2] .. ':'
local n, size = #own, 4
for i = 1, #entries do
  local entry = entries[i]
  if string.sub(entry, 1, n) == own then
    size = size + 1
    reply[size] = entry
  end
end
return reply
-- the same for names of another kind
--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local TOKEN = 'redisson_lock_token:{' .. NAME .. '}'
if moving then moving.need(QUEUE) end
local from = 0
if ARGV[3] ~= '' then
  local at = redis.call('LPOS', QUEUE, ARGV[3])
  if not at then return {0} end
  from = at + 1
end
local part = tonumber(ARGV[4])
local now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
local last = redis.pcall('GET', TOKEN)
last = type(last) == 'string' and #last == 16 and string.find(last, '^%d+$') and tonumber(last) or 0
local entries = redis.call('LRANGE', QUEUE, from, from + part - 1)
local reply = {tonumber(now), last, redis.call('LLEN', QUEUE), #entries == part and entries[part] or ''}
local own = '1:' .. ARGV[2] .. ':'
local n, size = #own, 4
for i = 1, #entries do
  local entry = entries[i]
  if string.sub(entry, 1, n) == own then
    size = size + 1
    reply[size] = entry
  end
end
return reply
