--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local TIMEOUTS = '{' .. NAME .. '}:timeout'
local HOLDERS = 'latchkey_holders:{' .. NAME .. '}'
local TOKEN = 'latchkey_token:{' .. NAME .. '}'
local function decimal(number) return string.format('%.0f', number) end
local function token_after(now, last, floor, reserved, lean)
  local number = tonumber(now)
  floor = tonumber(floor) or 0
  if last then
    local before = tonumber(last)
    if not (before and before > 0 and before < 9007199254730000) then
      redis.call('SET', TOKEN, last, 'KEEPTTL')
      error('WRONGTYPE ' .. TOKEN .. ' holds no fencing token')
    end
    if before > floor then floor = before end
  end
  if floor >= number then
    local ahead = 5000
    if floor > number + 2 * ahead then
      reserved = math.min(reserved, lean or 100)
    else
      reserved = math.max(0, math.min(reserved, number + ahead - floor - 1))
    end
    number = floor + 1
    redis.call('SET', TOKEN, decimal(number + reserved), 'KEEPTTL')
  end
  redis.call('PEXPIRE', TOKEN, (last or number > tonumber(now)) and '86400000' or '3600000')
  return decimal(number), reserved
end
local AHEAD = 5000
local DAY, HOUR = '86400000', '3600000'
local function clock()
  local now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
  return now
end
local function next_token(now, block, lean)
  local floor = ARGV[2]
  if block and block > 0 then
    local reserved = math.min(block, AHEAD)
    local last = redis.call('SET', TOKEN, decimal(now + reserved), 'KEEPTTL', 'GET')
    return token_after(now, last, floor, reserved, lean)
  end
  local last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
local newest = last and last < now and floor < now and #last == 16 and last > '1'
  and string.byte(last, 7) == string.byte(now, 7)
  if newest then return now, 0 end
  return token_after(now, last, floor, 0, lean)
end
local function parse_mode(text)
  if string.sub(text, 1, 3) ~= 'try' then return string.sub(text, 1, 5), false end
  if text == 'try' then return text, false end
  return 'try', clock() > string.sub(text, 5)
end
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
local PACE = 'latchkey_pace:{' .. NAME .. '}'
local LISTENERS = 1000
local function tell_waiting(kind, more, asker)
  local told, own = {}, asker and string.match(asker, '^[^:]+')
  if moving and moving.lacks(QUEUE) then return told end
  for _, entry in ipairs(redis.pcall('LRANGE', QUEUE, 0, LISTENERS - 1)) do -- nobody waits in foreign data
    local client, number = string.match(entry, '^1:([^:]+):(%d+):')
    if client and client ~= own and not told[client] then
      told[client] = entry
      tell(client, kind, number .. more)
    end
  end
  return told
end
local function note_lease(lease, asker)
  if tonumber(lease) >= SHORT then return end
  local before = redis.pcall('GET', PACE)
  before = type(before) == 'string' and tonumber(before)
  if before and before <= tonumber(lease) then
    if before == tonumber(lease) then redis.pcall('PEXPIRE', PACE, QUEUE_KEPT) end
    return
  end
  if SLOTS and type(redis.pcall('EXISTS', NAME, PACE)) ~= 'number' then return end
  redis.pcall('SET', PACE, lease, 'PX', QUEUE_KEPT)
  tell_waiting('l', ' ' .. lease, asker)
end
local function ask_in(ms)
  local pace = redis.pcall('GET', PACE)
  pace = type(pace) == 'string' and tonumber(pace)
  if pace and (ms < 0 or pace < ms) then return math.max(pace, 10) end -- no lease is shorter than 10 ms
  return ms
end
local function base(owner)
  local prefix
local colon = string.find(owner, ':', 1, true)
local number = string.sub(owner, colon + 1, #owner > colon + 9 and -10 or -1)
local fourth = number % 256
local high = (number - fourth) / 256
local third = high % 256
high = (high - third) / 256
local second = high % 256
prefix = (colon > 10 and string.sub(owner, colon - 10, colon - 1)
  or string.sub('..........' .. string.sub(owner, 1, colon - 1), -10))
  .. string.char((high - second) / 256 % 256, second, third, fourth)
  return prefix
end
local function append_permits(list, prefix, from, to, score)
  local size = #list
  for i = from, to - 1 do
    if score then
      size = size + 1
      list[size] = score
    end
    size = size + 1
    list[size] = prefix .. string.char(math.floor(i / 256), i % 256)
  end
end
local function parse_holder(text)
  local n, token, short, lease, owner = string.match(text or '', '^(%d+):(%d+):([01]):(%d+):([^:]+:%d+)$')
  if not n or #n > 4 or #token > 16 or #lease > 10
    or tonumber(n) == 0 or tonumber(n) > 1000 then return nil end
  return tonumber(n), token, short, owner, lease
end
local HOLDERS_KEPT = '172800000' -- two days, in ms: longer than any lease
local _, late = parse_mode(ARGV[4])
local now = clock()
if late then return {-6, 0, now} end
if moving then
  moving.need(TIMEOUTS)
  moving.need(HOLDERS)
end
local ms = math.floor(now / 1000)
local function held_by(id)
  local prefix = base(id)
  local n, token, _, owner = parse_holder(redis.call('HGET', HOLDERS, prefix))
  if not n or owner ~= id then return nil end
  local ends = redis.call('ZSCORE', TIMEOUTS, prefix .. '\0\0')
  if not ends or (tonumber(ends) or math.huge) <= ms then return nil end
  return n, token
end
local n, token = held_by(ARGV[1])
local moves = not n
if moves then
  n, token = held_by(ARGV[5])
  token = ARGV[6] or token
end
if not n then return {-3, 0, now} end
local to, from, permits = base(ARGV[1]), base(ARGV[5]), {}
append_permits(permits, to, 0, n, string.format('%.0f', ms + 1 + ARGV[3]))
redis.call('ZADD', TIMEOUTS, unpack(permits)) -- what is new stands before what is old goes
redis.call('HSET', HOLDERS, to, n .. ':' .. token .. ':0:' .. ARGV[3] .. ':' .. ARGV[1])
redis.call('PEXPIRE', HOLDERS, HOLDERS_KEPT)
if moves then
  permits = {}
  append_permits(permits, from, 0, n)
  redis.call('HDEL', HOLDERS, from)
  redis.call('ZREM', TIMEOUTS, unpack(permits))
end
note_lease(ARGV[3]) -- also those of its own client, which gets no answer as a waiter
return {0, tonumber(token), n, 0}
