--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local INBOX = 'latchkey_inbox:'
if SLOTS and not moving and not ARGV[3]
  and redis.pcall('EXISTS', NAME, QUEUE) == 1 and redis.call('HDEL', NAME, ARGV[1]) == 1 then
  return 1
end
if ARGV[3] and ARGV[3] ~= '' then redis.pcall('LREM', QUEUE, 0, ARGV[3]) end
local rests = ARGV[4] and ARGV[4] ~= '0'
local owned = redis.call((SLOTS or rests) and 'HEXISTS' or 'HDEL', NAME, ARGV[1])
if owned == 1 and ARGV[5] then redis.pcall(VERB, ARGV[5], '0') end
local head
local former = SLOTS and {ARGV[1]} -- of lock/hand.lua
if owned == 0 then
  if redis.call('EXISTS', NAME) == 1 then return 0 end
elseif not rests then
  head = not (moving and moving.lacks(QUEUE)) and redis.pcall('LPOP', QUEUE)
  if not head or head.err then
    if SLOTS then redis.call('HDEL', NAME, ARGV[1]) end
    return 1
  end
  local client, number, lease = string.match(head, '^1:([^:]+):(%d+):([1-9]%d%d%d+):0$')
  if client and #lease <= 10 and (#lease > 4 or lease >= '3000') and not moving then
    local inbox = INBOX .. client
    local listening = redis.pcall('PUBSUB', NUMSUB, inbox)
    if listening.err or listening[2] > 0 then
local TOKEN = 'redisson_lock_token:{' .. NAME .. '}'
local now, fits, last, failed = ARGV[2], false, nil, false
for look = #now == 16 and 1 or 2, 2 do
  local floor = ''
  if look == 2 then
    floor = ARGV[2]
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
  end
  local before = redis.pcall('SET', TOKEN, now, 'KEEPTTL', 'GET')
  if before and before.err then
    failed = true
    break
  end
  if last == nil then last = before end
local newest = last and last < now and floor < now and #last == 16 and last > '1'
  and string.byte(last, 7) == string.byte(now, 7)
  if newest then
    fits = true
    break
  end
end
if fits or failed then -- foreign data is left alone
elseif last then
  redis.pcall('SET', TOKEN, last, 'KEEPTTL')
else
  redis.pcall('DEL', TOKEN)
end
      if fits then
        local token, reserved, others, mark, ms, short = now, '0', '0', '', lease, '2000'
local id = client .. ':' .. number
redis.call('HSET', NAME, id, 't' .. token .. mark .. '/' .. lease .. '!' .. now)
redis.call('PEXPIRE', NAME, ms)
for i = 1, former and #former or 0 do
  if former[i] ~= id then redis.call('HDEL', NAME, former[i]) end
end
redis.pcall(VERB, inbox, '1 g ' .. number .. ' ' .. token .. ' ' .. reserved .. ' ' .. others
  .. ' ' .. now .. ' ' .. short .. ' ' .. NAME)
        return 1
      end
    end
  end
end
local TOKEN = 'redisson_lock_token:{' .. NAME .. '}'
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
local former = {}
local function mark_of(reserved, lingers)
  if reserved > 0 or lingers == 'l' then return '+' .. reserved .. lingers end
  return ''
end
local function own(id, lease, token, reserved, lingers)
  redis.call('HSET', NAME, id, 't' .. token .. mark_of(reserved, lingers) .. '/' .. lease)
  redis.call('PEXPIRE', NAME, lease)
  for _, field in ipairs(former) do
    if field ~= id then redis.call('HDEL', NAME, field) end
  end
end
local function others_wait()
  if moving and moving.lacks(QUEUE) then return 0 end
  return math.min(redis.call('LLEN', QUEUE), 1)
end
local function grant(self, head, queues)
  if moving then moving.need(TOKEN) end
  local entry = head
  while true do
    entry = entry or not (moving and moving.lacks(QUEUE)) and redis.call('LPOP', QUEUE)
    if not entry then return nil end
    local client, number, lease, block, lingers = string.match(entry, '^1:([^:]+):(%d+):(%d+):(%d+)(l?)$')
    if client and #lease <= 10 and (entry == self or alive(client)) then
      local now = clock()
      local done, token, reserved = pcall(next_token, now, tonumber(block))
      if not done then
        redis.pcall('LPUSH', QUEUE, entry)
        redis.pcall('PEXPIRE', QUEUE, QUEUE_KEPT)
        error(token, 0)
      end
      if entry == self then
        own(client .. ':' .. number, lease, token, reserved, lingers)
        return token, reserved
      end
      local short, ms = '2000', lease
      if #lease < 5 then
        ms = math.max(tonumber(lease), math.min(tonumber(lease), SHORT) + OUTLIVES)
        if tonumber(lease) < SHORT then
          short = lease
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
          note_lease(lease)
        end
      end
      local others = queues and 1 or reserved > 0 and others_wait() or 0
      local mark = mark_of(reserved, lingers)
      local inbox = INBOX .. client
local id = client .. ':' .. number
redis.call('HSET', NAME, id, 't' .. token .. mark .. '/' .. lease .. '!' .. now)
redis.call('PEXPIRE', NAME, ms)
for i = 1, former and #former or 0 do
  if former[i] ~= id then redis.call('HDEL', NAME, former[i]) end
end
redis.pcall(VERB, inbox, '1 g ' .. number .. ' ' .. token .. ' ' .. reserved .. ' ' .. others
  .. ' ' .. now .. ' ' .. short .. ' ' .. NAME)
      return false
    end
    entry = nil
  end
end
local function hand_over(head)
  local done, token = pcall(grant, nil, head)
  if not done or token == nil then redis.call('DEL', NAME) end
end
if rests and owned == 1 then
local function parse_token(text)
  local number, reserved, lingers, longest, granted =
    string.match(text or '', '^t(%d+)%+?(%d*)(l?)/?(%d*)!?(%d*)$')
  if not number or #number > 16 or #reserved > 4 or #longest > 10 or #granted > 16 then return nil, 0 end
  return number, tonumber(reserved) or 0, tonumber(longest), lingers ~= '', tonumber(granted)
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
  local token = parse_token(redis.call('HGET', NAME, ARGV[1])) or 0
  redis.call('PEXPIRE', NAME, ARGV[4])
  redis.call('HSET', NAME, ARGV[1] .. ':rest', 't' .. token .. '/' .. ARGV[4])
  redis.call('HDEL', NAME, ARGV[1])
  redis.call('PEXPIRE', NAME, ARGV[4])
  tell_waiting('l', ' ' .. ARGV[4])
  return 1
end
if SLOTS and owned == 1 then former = {ARGV[1]} end
hand_over(head)
return owned
