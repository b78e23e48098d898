-- lead: the holder of the lock says that it leads, at the beginning of its term and now and then. It is told
-- whether a better candidate waits. Safe to repeat: a copy writes the same, or finds a greater token.
--
-- Keys  as in leader/record.lua
-- ARGV  1 unused
--       2 token, in 16 digits
--       3 who leads
--       4 preferred: 1, or 0, which leaves the lead to a preferred one that waits
--       5 begins: 1 when the term has not begun yet: then nothing is written for who is to leave the lead
-- Reply {1, since}  written
--       {2, since}  written, and a preferred candidate waits
--       {0, '0'}    a preferred candidate waits: nothing was written
--       {3, ms}     the name is paused: nothing was written. Ask again after so many ms
--       {GREATER, token} a greater token was there: nothing was written
-- include leader/record.lua
-- include shared/inbox.lua
-- include shared/pause.lua

local now
-- inline shared/now.lua

if said[1] and said[1] > ARGV[2] then return {REPLY_GREATER, said[1]} end

local paused = paused_for(tonumber(now))
if paused > 0 then return {3, paused} end

-- A mark counts while its client is in the queue, and lives. A client that is not in the queue
-- may be about to come, for a minute.
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
