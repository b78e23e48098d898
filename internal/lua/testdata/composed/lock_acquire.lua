--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local TOKEN = 'redisson_lock_token:{' .. NAME .. '}'
local call = redis.call -- to look it up costs two searches of tables
if not moving and (SLOTS and redis.pcall or call)('EXISTS', NAME, QUEUE) == 0 and (ARGV[5] or '0') == '0' then
local now, floor = ARGV[2], ''
if #now ~= 16 then
  floor = now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
  if ARGV[4] and #ARGV[4] > 5 and now > string.sub(ARGV[4], 5) then return {-6, 0, now} end
end
local last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
local newest = last and last < now and floor < now and #last == 16 and last > '1'
  and string.byte(last, 7) == string.byte(now, 7)
local token = now
if not newest then
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
  token = token_after(now, last, floor, 0)
end
  call('HSET', NAME, ARGV[1], 't' .. token .. '/' .. ARGV[3])
  call('PEXPIRE', NAME, ARGV[3])
  return token
end
if not moving and ARGV[4] and string.sub(ARGV[4], 1, 3) == 'try' then
  local held = redis.call('HRANDFIELD', NAME, '2', 'WITHVALUES')
  local value = #held == 2 and held[1] ~= ARGV[1] and held[2] or ''
  local number, reserved, longest = string.match(value, '^t(%d+)%+?(%d*)/(%d+)$')
  if number and #number <= 16 and #reserved <= 4 and #longest <= 10 then -- see shared/value.lua
    local left = redis.call('PTTL', NAME)
    if left > 0 and left <= tonumber(longest) then -- else it must be cut
      local now = 0
      if #ARGV[4] > 5 then
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
        if now > string.sub(ARGV[4], 5) then return {-6, 0, now} end
      end
      return {-1, left, now}
    end
  end
elseif not moving and not ARGV[4] and (#ARGV[3] > 4 or #ARGV[3] == 4 and ARGV[3] >= '2000') then
  local held = redis.call('HRANDFIELD', NAME, '2', 'WITHVALUES')
  local value = #held == 2 and held[1] ~= ARGV[1] and held[2] or ''
  local left, granted
  if #value >= 39 and string.byte(value, 18) == 47 and string.byte(value, -17) == 33
    and (#value > 39 or string.byte(value, 19) >= 50) then -- 2000 at least: see SHORT in shared/inbox.lua
    left, granted = 2000, tonumber(string.sub(value, -9, -4), 10) -- ms, modulo a thousand seconds
  else
    local longest = string.match(value, '^t%d+/(%d+)$')
    if longest and (#longest > 10 or #value - #longest > 18) then longest = nil end -- see shared/value.lua
    left = longest and redis.call('PTTL', NAME) or 0
    if longest and left > tonumber(longest) then left = 0 end -- it must be cut
  end
  if left > 0 then
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
    if fits and granted then
      local age = tonumber(string.sub(now, 8, 13), 10) - granted
      if age < -500000 then age = age + 1000000 end
      if age > 0 then left = 2000 - age elseif age < -200 then left = 0 end
    end
    if fits and left > 0 then -- else a number is lost, which is no matter
      local length = redis.call('RPUSH', QUEUE, '1:' .. ARGV[1] .. ':' .. ARGV[3] .. ':0')
      if length > 100000 then
        redis.call('RPOP', QUEUE)
        return {-2, length - 1, 0}
      end
      redis.call('PEXPIRE', QUEUE, '60000')
      if length > 1 then -- those before may have shorter leases: see shared/pace.lua
local PACE = 'latchkey_pace:{' .. NAME .. '}'
        local pace = redis.pcall('GET', PACE)
        pace = type(pace) == 'string' and tonumber(pace)
        if pace and pace < left then left = math.max(pace, 10) end
      end
      if now == ARGV[2] then return left end
      return {now, left, now}
    end
  end
end
local function enqueue(entry) return redis.call('RPUSH', QUEUE, entry) end
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
local function parse_token(text)
  local number, reserved, lingers, longest, granted =
    string.match(text or '', '^t(%d+)%+?(%d*)(l?)/?(%d*)!?(%d*)$')
  if not number or #number > 16 or #reserved > 4 or #longest > 10 or #granted > 16 then return nil, 0 end
  return number, tonumber(reserved) or 0, tonumber(longest), lingers ~= '', tonumber(granted)
end
local function fields() return redis.call('HRANDFIELD', NAME, '2', 'WITHVALUES') end
local function is_lock(held)
  return #held == 2 and string.find(held[1], ':', 1, true)
    and (parse_token(held[2]) or string.find(held[2], '^%d+$')) and true
end
local function not_a_lock()
  return {err = 'WRONGTYPE ' .. NAME .. ' holds data that is not a lock'}
end
local function lease_left(now, longest, granted)
  local left = redis.call('PTTL', NAME)
  if left == -2 then return nil end
  local short = math.min(longest or SHORT, SHORT)
  if granted and longest then longest = math.max(longest, short + OUTLIVES) end
  if longest and (left > longest or left == -1) then
    redis.call('PEXPIRE', NAME, longest)
    left = longest
  end
  if not granted then return left end
  return math.min(left, math.max(0, math.ceil((granted - now) / 1000) + short))
end
local function tell_owner(owner, kind, text)
  local client, number = string.match(owner, '^([^:]+):(%d+)$')
  if client then tell(client, kind, text and number .. ' ' .. text or number) end
end
local function owner_reply(token, reserved)
  if reserved == 0 then return token end
  return {0, token, reserved, others_wait()}
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
local CALLED = 'latchkey_called:{' .. NAME .. '}'
local answering = false
local function of_unresponsive(clients)
  local found, called, own = {}, {}, string.match(ARGV[1], '^[^:]+')
  if moving and moving.lacks(QUEUE) then return found end
  local left = redis.pcall('PTTL', CALLED)
  answering = type(left) == 'number' and QUEUE_KEPT - left < 1000
  local list = answering and {} or redis.pcall('HGETALL', CALLED) -- foreign data says nothing
  for i = 1, #list, 2 do called[list[i]] = list[i + 1] end
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, -1)) do
    local client = string.match(entry, '^1:([^:]+):')
    if client and client ~= own then
      if called[client] == entry then clients[client] = true end -- its others stand behind this one
      if clients[client] then found[#found + 1] = entry end
    end
  end
  return found
end
local function next_place(now) return tonumber((next_token(now))) end
local LONGEST = 100000
local mode, late = parse_mode(ARGV[4] or 'first')
if late then return {-6, 0, clock()} end
local block, lingers = string.match(ARGV[5] or '0', '^(%d+)(l?)$')
local held = fields()
local number, reserved, longest, may_linger, granted = parse_token(held[2])
if number and held[1] == ARGV[1] then
  redis.call('PEXPIRE', NAME, ARGV[3]) -- first: Redis never refuses it for lack of memory, nor what follows
  if granted then redis.call('HSET', NAME, ARGV[1], (string.gsub(held[2], '!.*', ''))) end
  return owner_reply(number, reserved)
end
local now, left = clock(), nil
local free = not held[1]
local unanswered = false -- whether a client did not react: see shared/queue.lua
if mode == 'again' then
if redis.pcall('EXISTS', CALLED) == 1 then redis.pcall('HDEL', CALLED, (string.match(ARGV[1], '^[^:]+'))) end
end
if held[1] then
  if not is_lock(held) then return not_a_lock() end
  left = lease_left(now, longest, granted)
  if granted and left == 0 then
    free, unanswered, former = true, true, {held[1]}
    local client = string.match(held[1], '^([^:]+):%d+$') or ''
    for _, entry in ipairs(of_unresponsive({[client] = true})) do redis.call('LREM', QUEUE, 1, entry) end
  end
end
local entry = '1:' .. ARGV[1] .. ':' .. ARGV[3] .. ':' .. block .. lingers
if free then
  local token, more = grant(entry)
  if token == nil then -- nobody who lives was queued
    token, more = next_token(now, lingers == 'l' and tonumber(block) or 0)
    own(ARGV[1], ARGV[3], token, more, lingers)
  end
  if unanswered then
if not answering and (not SLOTS or type(redis.pcall('EXISTS', NAME, CALLED)) == 'number') then
  redis.pcall('DEL', CALLED)
  for client, entry in pairs(tell_waiting('a', '', ARGV[1])) do redis.pcall('HSET', CALLED, client, entry) end
  redis.pcall('PEXPIRE', CALLED, QUEUE_KEPT)
end
  end
  if token then return owner_reply(token, more) end
  held = fields()
  number, reserved, longest, may_linger, granted = parse_token(held[2])
  left = lease_left(now, longest, granted)
end
if mode == 'try' then
local function ask_owner(owner)
  local client = string.match(owner, '^([^:]+):%d+$')
  if not client or client == string.match(ARGV[1], '^[^:]+') or others_wait() == 1 or not alive(client) then
    return false
  end
  tell_owner(owner, 't', ARGV[1])
  return true
end
  return {may_linger and ask_owner(held[1]) and -9 or -1, left or 0, now}
end
if moving then moving.need(QUEUE) end
local sequence
if mode == 'first' or not redis.call('LPOS', QUEUE, entry) then
  local length = redis.call('LLEN', QUEUE)
  if length >= tonumber(ARGV[6] or LONGEST) then return {-2, length, now} end
  if moving then moving.need(TOKEN) end
  sequence = next_place(now)
  enqueue(entry)
  if length == 0 and (reserved > 0 or may_linger) then tell_owner(held[1], 'w') end
else
  local last = redis.pcall('GET', TOKEN)
  sequence = type(last) == 'string' and #last == 16 and string.find(last, '^%d+$') and -last or 0
end
redis.call('PEXPIRE', QUEUE, QUEUE_KEPT)
note_lease(ARGV[3], ARGV[1])
return {sequence, ask_in(left or 0), now}
-- the same for names of another kind
--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local TOKEN = 'redisson_lock_token:{' .. NAME .. '}'
if redis.call('EXISTS', TOKEN) == 0 then
  local up = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
  if not up or (up - 1) * 1000 < tonumber(ARGV[7]) then return {-8, up or 0, 0} end
end
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local call = redis.call -- to look it up costs two searches of tables
if not moving and (SLOTS and redis.pcall or call)('EXISTS', NAME, QUEUE) == 0 and (ARGV[5] or '0') == '0' then
local now, floor = ARGV[2], ''
if #now ~= 16 then
  floor = now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
  if ARGV[4] and #ARGV[4] > 5 and now > string.sub(ARGV[4], 5) then return {-6, 0, now} end
end
local last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
local newest = last and last < now and floor < now and #last == 16 and last > '1'
  and string.byte(last, 7) == string.byte(now, 7)
local token = now
if not newest then
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
  token = token_after(now, last, floor, 0)
end
  call('HSET', NAME, ARGV[1], 't' .. token .. '/' .. ARGV[3])
  call('PEXPIRE', NAME, ARGV[3])
  return token
end
if not moving and ARGV[4] and string.sub(ARGV[4], 1, 3) == 'try' then
  local held = redis.call('HRANDFIELD', NAME, '2', 'WITHVALUES')
  local value = #held == 2 and held[1] ~= ARGV[1] and held[2] or ''
  local number, reserved, longest = string.match(value, '^t(%d+)%+?(%d*)/(%d+)$')
  if number and #number <= 16 and #reserved <= 4 and #longest <= 10 then -- see shared/value.lua
    local left = redis.call('PTTL', NAME)
    if left > 0 and left <= tonumber(longest) then -- else it must be cut
      local now = 0
      if #ARGV[4] > 5 then
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
        if now > string.sub(ARGV[4], 5) then return {-6, 0, now} end
      end
      return {-1, left, now}
    end
  end
elseif not moving and not ARGV[4] and (#ARGV[3] > 4 or #ARGV[3] == 4 and ARGV[3] >= '2000') then
  local held = redis.call('HRANDFIELD', NAME, '2', 'WITHVALUES')
  local value = #held == 2 and held[1] ~= ARGV[1] and held[2] or ''
  local left, granted
  if #value >= 39 and string.byte(value, 18) == 47 and string.byte(value, -17) == 33
    and (#value > 39 or string.byte(value, 19) >= 50) then -- 2000 at least: see SHORT in shared/inbox.lua
    left, granted = 2000, tonumber(string.sub(value, -9, -4), 10) -- ms, modulo a thousand seconds
  else
    local longest = string.match(value, '^t%d+/(%d+)$')
    if longest and (#longest > 10 or #value - #longest > 18) then longest = nil end -- see shared/value.lua
    left = longest and redis.call('PTTL', NAME) or 0
    if longest and left > tonumber(longest) then left = 0 end -- it must be cut
  end
  if left > 0 then
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
    if fits and granted then
      local age = tonumber(string.sub(now, 8, 13), 10) - granted
      if age < -500000 then age = age + 1000000 end
      if age > 0 then left = 2000 - age elseif age < -200 then left = 0 end
    end
    if fits and left > 0 then -- else a number is lost, which is no matter
      local length = redis.call('RPUSH', QUEUE, '1:' .. ARGV[1] .. ':' .. ARGV[3] .. ':0')
      if length > 100000 then
        redis.call('RPOP', QUEUE)
        return {-2, length - 1, 0}
      end
      redis.call('PEXPIRE', QUEUE, '60000')
      if length > 1 then -- those before may have shorter leases: see shared/pace.lua
local PACE = 'latchkey_pace:{' .. NAME .. '}'
        local pace = redis.pcall('GET', PACE)
        pace = type(pace) == 'string' and tonumber(pace)
        if pace and pace < left then left = math.max(pace, 10) end
      end
      if now == ARGV[2] then return left end
      return {now, left, now}
    end
  end
end
local function enqueue(entry) return redis.call('RPUSH', QUEUE, entry) end
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
local function parse_token(text)
  local number, reserved, lingers, longest, granted =
    string.match(text or '', '^t(%d+)%+?(%d*)(l?)/?(%d*)!?(%d*)$')
  if not number or #number > 16 or #reserved > 4 or #longest > 10 or #granted > 16 then return nil, 0 end
  return number, tonumber(reserved) or 0, tonumber(longest), lingers ~= '', tonumber(granted)
end
local function fields() return redis.call('HRANDFIELD', NAME, '2', 'WITHVALUES') end
local function is_lock(held)
  return #held == 2 and string.find(held[1], ':', 1, true)
    and (parse_token(held[2]) or string.find(held[2], '^%d+$')) and true
end
local function not_a_lock()
  return {err = 'WRONGTYPE ' .. NAME .. ' holds data that is not a lock'}
end
local function lease_left(now, longest, granted)
  local left = redis.call('PTTL', NAME)
  if left == -2 then return nil end
  local short = math.min(longest or SHORT, SHORT)
  if granted and longest then longest = math.max(longest, short + OUTLIVES) end
  if longest and (left > longest or left == -1) then
    redis.call('PEXPIRE', NAME, longest)
    left = longest
  end
  if not granted then return left end
  return math.min(left, math.max(0, math.ceil((granted - now) / 1000) + short))
end
local function tell_owner(owner, kind, text)
  local client, number = string.match(owner, '^([^:]+):(%d+)$')
  if client then tell(client, kind, text and number .. ' ' .. text or number) end
end
local function owner_reply(token, reserved)
  if reserved == 0 then return token end
  return {0, token, reserved, others_wait()}
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
local CALLED = 'latchkey_called:{' .. NAME .. '}'
local answering = false
local function of_unresponsive(clients)
  local found, called, own = {}, {}, string.match(ARGV[1], '^[^:]+')
  if moving and moving.lacks(QUEUE) then return found end
  local left = redis.pcall('PTTL', CALLED)
  answering = type(left) == 'number' and QUEUE_KEPT - left < 1000
  local list = answering and {} or redis.pcall('HGETALL', CALLED) -- foreign data says nothing
  for i = 1, #list, 2 do called[list[i]] = list[i + 1] end
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, -1)) do
    local client = string.match(entry, '^1:([^:]+):')
    if client and client ~= own then
      if called[client] == entry then clients[client] = true end -- its others stand behind this one
      if clients[client] then found[#found + 1] = entry end
    end
  end
  return found
end
local function next_place(now) return tonumber((next_token(now))) end
local LONGEST = 100000
local mode, late = parse_mode(ARGV[4] or 'first')
if late then return {-6, 0, clock()} end
local block, lingers = string.match(ARGV[5] or '0', '^(%d+)(l?)$')
local held = fields()
local number, reserved, longest, may_linger, granted = parse_token(held[2])
if number and held[1] == ARGV[1] then
  redis.call('PEXPIRE', NAME, ARGV[3]) -- first: Redis never refuses it for lack of memory, nor what follows
  if granted then redis.call('HSET', NAME, ARGV[1], (string.gsub(held[2], '!.*', ''))) end
  return owner_reply(number, reserved)
end
local now, left = clock(), nil
local free = not held[1]
local unanswered = false -- whether a client did not react: see shared/queue.lua
if mode == 'again' then
if redis.pcall('EXISTS', CALLED) == 1 then redis.pcall('HDEL', CALLED, (string.match(ARGV[1], '^[^:]+'))) end
end
if held[1] then
  if not is_lock(held) then return not_a_lock() end
  left = lease_left(now, longest, granted)
  if granted and left == 0 then
    free, unanswered, former = true, true, {held[1]}
    local client = string.match(held[1], '^([^:]+):%d+$') or ''
    for _, entry in ipairs(of_unresponsive({[client] = true})) do redis.call('LREM', QUEUE, 1, entry) end
  end
end
local entry = '1:' .. ARGV[1] .. ':' .. ARGV[3] .. ':' .. block .. lingers
if free then
  local token, more = grant(entry)
  if token == nil then -- nobody who lives was queued
    token, more = next_token(now, lingers == 'l' and tonumber(block) or 0)
    own(ARGV[1], ARGV[3], token, more, lingers)
  end
  if unanswered then
if not answering and (not SLOTS or type(redis.pcall('EXISTS', NAME, CALLED)) == 'number') then
  redis.pcall('DEL', CALLED)
  for client, entry in pairs(tell_waiting('a', '', ARGV[1])) do redis.pcall('HSET', CALLED, client, entry) end
  redis.pcall('PEXPIRE', CALLED, QUEUE_KEPT)
end
  end
  if token then return owner_reply(token, more) end
  held = fields()
  number, reserved, longest, may_linger, granted = parse_token(held[2])
  left = lease_left(now, longest, granted)
end
if mode == 'try' then
local function ask_owner(owner)
  local client = string.match(owner, '^([^:]+):%d+$')
  if not client or client == string.match(ARGV[1], '^[^:]+') or others_wait() == 1 or not alive(client) then
    return false
  end
  tell_owner(owner, 't', ARGV[1])
  return true
end
  return {may_linger and ask_owner(held[1]) and -9 or -1, left or 0, now}
end
if moving then moving.need(QUEUE) end
local sequence
if mode == 'first' or not redis.call('LPOS', QUEUE, entry) then
  local length = redis.call('LLEN', QUEUE)
  if length >= tonumber(ARGV[6] or LONGEST) then return {-2, length, now} end
  if moving then moving.need(TOKEN) end
  sequence = next_place(now)
  enqueue(entry)
  if length == 0 and (reserved > 0 or may_linger) then tell_owner(held[1], 'w') end
else
  local last = redis.pcall('GET', TOKEN)
  sequence = type(last) == 'string' and #last == 16 and string.find(last, '^%d+$') and -last or 0
end
redis.call('PEXPIRE', QUEUE, QUEUE_KEPT)
note_lease(ARGV[3], ARGV[1])
return {sequence, ask_in(left or 0), now}
