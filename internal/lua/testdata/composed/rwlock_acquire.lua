--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local TOKEN = 'redisson_lock_token:{' .. NAME .. '}'
local STATE = 'latchkey_rwlock:{' .. NAME .. '}'
local LEASES = '{' .. NAME .. '}:'
local reads = ARGV[5] and string.sub(ARGV[5], -1) == 's'
local there = not moving and (SLOTS and redis.pcall or redis.call)('EXISTS', NAME, QUEUE)
if there == 0 then
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
  local field, writer = 't' .. token .. '/' .. ARGV[3], reads and '' or ARGV[1]
  local made = redis.call('HSET', STATE, 'token', field, 'short', '', 'writer', writer)
  if made == 3 or not newest or #ARGV[3] > 6 then
    redis.call('PEXPIRE', STATE, (last or #ARGV[3] > 6) and '86400000' or '3600000')
  end
  if reads then
    redis.call('SET', LEASES .. ARGV[1] .. ':rwlock_timeout:1', ARGV[3], 'PX', ARGV[3])
    redis.call('HSET', NAME, 'mode', 'read', ARGV[1], '1')
  else
    redis.call('HSET', NAME, 'mode', 'write', ARGV[1] .. ':write', '1')
  end
  redis.call('PEXPIRE', NAME, ARGV[3])
  return token
end
if reads and #ARGV[4] <= 9 and there == 1 and redis.call('HGET', NAME, 'mode') == 'read' then
  local state = redis.call('HMGET', STATE, 'token', 'writer')
  local token, reserved, longest = string.match(state[1] or '', '^t(%d+)%+?(%d*)/(%d+)$')
  if token and (state[2] or '') == '' and #token == 16 and token .. ' ' >= ARGV[2]
    and #reserved <= 4 and #longest <= 10 and tonumber(longest) >= tonumber(ARGV[3]) then
    if reserved ~= '' then token = string.format('%.0f', token + reserved) end
    redis.call('SET', LEASES .. ARGV[1] .. ':rwlock_timeout:1', ARGV[3], 'PX', ARGV[3])
    redis.call('HSET', NAME, 'mode', 'read', ARGV[1], '1')
    local left = redis.call('PTTL', NAME)
    if left >= 0 and left < tonumber(ARGV[3]) then redis.call('PEXPIRE', NAME, ARGV[3]) end
    return token
  end
end
if not moving and #(ARGV[4] or '') > 6 and string.byte(ARGV[4], 6) == 32 -- again, and a place
  and (#ARGV[3] > 4 or #ARGV[3] == 4 and ARGV[3] >= '2000') then
  local id, place = ARGV[1], tonumber(string.match(ARGV[4], '^again (%d+)') or '') or 0
  local holds = redis.call('HMGET', NAME, 'mode', id, id .. ':write')
  local reads = holds[1] == 'read' and not holds[2] and not holds[3]
  local state = reads and place > 15 and redis.pcall('HMGET', STATE, 'ends', 'token') or {}
  local ends = state[1] and #state[1] == 13 and tonumber(state[1])
  local longest = ends and string.match(state[2] or '', '^t%d+%+?%d*/(%d+)$') or ''
  local head = #longest > 0 and #longest <= 10 and redis.pcall('LINDEX', QUEUE, 0)
  local client, lease = string.match(type(head) == 'string' and head or '', '^1:([^:]+):%d+:([1-9]%d*):%d+$')
  if client and #lease <= 10 then -- a writer
    local now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
    local left = ends - math.floor(now / 1000)
local INBOX = 'latchkey_inbox:'
local PACE = 'latchkey_pace:{' .. NAME .. '}'
local CALLED = 'latchkey_called:{' .. NAME .. '}'
    local timely = left > 0 and left <= tonumber(longest)
    local listening = timely and redis.pcall('PUBSUB', NUMSUB, INBOX .. client)
    if listening and (listening.err or listening[2] > 0) then
      local entry = '1:' .. id .. ':' .. ARGV[3] .. ':' .. (ARGV[5] or '0')
      local at = redis.call('LINDEX', QUEUE, place) == entry and place
      local near = at and {} or redis.call('LRANGE', QUEUE, place - 15, place - 1)
      for i = 1, #near do
        if near[i] == entry then at = place - 16 + i end
      end
      if at then
        redis.call('PEXPIRE', QUEUE, '60000')
if redis.pcall('EXISTS', CALLED) == 1 then redis.pcall('HDEL', CALLED, (string.match(ARGV[1], '^[^:]+'))) end
        local pace = redis.pcall('GET', PACE) -- as ask_in of shared/pace.lua
        pace = type(pace) == 'string' and tonumber(pace)
        if pace and pace < left then left = math.max(pace, 10) end
        return {0, left, now, 0, at}
      end
    end
  end
end
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
local function parse_token(text)
  local number, reserved, lingers, longest, granted =
    string.match(text or '', '^t(%d+)%+?(%d*)(l?)/?(%d*)!?(%d*)$')
  if not number or #number > 16 or #reserved > 4 or #longest > 10 or #granted > 16 then return nil, 0 end
  return number, tonumber(reserved) or 0, tonumber(longest), lingers ~= '', tonumber(granted)
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
local undeclared, demand
if KEYS[2] then
  local named = {}
  for _, key in ipairs(KEYS) do named[key] = true end
  undeclared = function(key) return not named[key] end
  demand = function(ends)
    return 'LATCHKEY_UNDECLARED ' .. table.concat(ends, ' ', 1, math.min(#ends, 1000)) .. ' .'
  end
end
local mode = redis.call('HGET', NAME, 'mode')
if mode ~= 'read' and mode ~= 'write' then
  if mode or redis.call('EXISTS', NAME) == 1 then
    return {err = 'WRONGTYPE ' .. NAME .. ' holds data that is not a read-write lock'}
  end
  mode = nil -- nobody holds it
end
local function timeout_of(owner, n) return LEASES .. owner .. ':rwlock_timeout:' .. (n or '1') end
if undeclared then
local wanted = {}
local function want(id, n)
  local key = timeout_of(id, n)
  if undeclared(key) and not string.find(id, '%s') then wanted[#wanted + 1] = string.sub(key, #LEASES + 1) end
end
local fields = redis.call('HGETALL', NAME)
for i = 1, #fields, 2 do
  local count = tonumber(fields[i + 1])
  if count and fields[i] ~= 'mode' and not string.find(fields[i], ':write', -6, true) then
    for n = 1, math.min(count, 64) do want(fields[i], n) end
  end
end
local queued = redis.pcall('LRANGE', QUEUE, 0, 99) -- so many are granted by one script
for i = 1, queued.err and 0 or #queued do
  local id, demanded = string.match(queued[i], '^1:([^:]+:%d+):%d+:(%d+s?)$')
  if id and string.sub(demanded, -1) == 's' then want(id) end
end
if wanted[1] and KEYS[#KEYS] ~= NAME then return {err = demand(wanted)} end
end
local function state_token() return parse_token(redis.call('HGET', STATE, 'token')) end
local function token_field(text, reserved, longest)
  return 't' .. text .. (reserved > 0 and '+' .. reserved or '') .. '/' .. longest
end
local former = {}
local function is_at_large(writer)
  if not writer or writer == '' or string.find(writer, ':rest', -5, true) then return false end
  for _, field in ipairs(former) do
    if field == writer .. ':write' then return false end -- this script takes it back
  end
  return true
end
local function read_token(lease)
  local state = redis.call('HMGET', STATE, 'token', 'writer', 'short')
  local number, reserved, longest = parse_token(state[1])
  if reserved > 0 then number = decimal(number + reserved) end
  if mode ~= 'read' or not number or tonumber(number) < tonumber(ARGV[2]) or is_at_large(state[2]) then
    number, longest = next_token(clock()), nil
  end
  if not longest or longest < tonumber(lease) or (state[3] or '') ~= '' then
    redis.call('HSET', STATE, 'token', token_field(number, 0, lease), 'writer', '', 'short', '')
    redis.call('PEXPIRE', STATE, DAY)
  end
  return number
end
local function keep(ms)
  local left = redis.call('PTTL', NAME)
  if not mode or left >= 0 and left < tonumber(ms) then redis.call('PEXPIRE', NAME, ms) end
end
local function drop_former(owner)
  for i = #former, 1, -1 do
    if former[i] == owner then table.remove(former, i) end
  end
  for i = 1, #former, 1000 do redis.call('HDEL', NAME, unpack(former, i, math.min(i + 999, #former))) end
  for _, field in ipairs(former) do
    local writer = string.match(field, '^(.*):write$')
    if not writer then
      local timeout = timeout_of(field)
      if not (undeclared and undeclared(timeout)) then redis.pcall('DEL', timeout) end
    elseif redis.pcall('HGET', STATE, 'writer') == writer then
      redis.pcall('HSET', STATE, 'writer', '', 'short', '') -- it has given the lock back
    end
  end
  former = {}
end
local function own_read(id, lease, ms)
  if moving then moving.need(timeout_of(id)) end
  local token = read_token(lease)
  redis.call('SET', timeout_of(id), lease, 'PX', ms) -- first: while the slot moves it may be refused
  redis.call('HSET', NAME, 'mode', 'read', id, '1')
  keep(ms == lease and ms or ms + OUTLIVES)
  mode = 'read'
  drop_former(id)
  return token
end
local function own_write(id, lease, text, reserved, ms)
  local token = token_field(text, reserved, lease)
  redis.call('HSET', STATE, 'token', token, 'short', ms == lease and '' or id, 'writer', id)
  redis.call('PEXPIRE', STATE, DAY)
  redis.call('HSET', NAME, 'mode', 'write', id .. ':write', '1')
  redis.call('PEXPIRE', NAME, ms)
  mode = 'write'
  drop_former(id .. ':write')
end
local function fits(reads)
  return not mode or reads and mode == 'read'
end
local function is_read(demand) return string.sub(demand, -1) == 's' end
local how, late = parse_mode(ARGV[4])
if late then return {-6, 0, clock()} end
local function own_now()
  if moving then
    moving.need(TOKEN)
    moving.need(STATE)
  end
  if reads then return own_read(ARGV[1], ARGV[3], ARGV[3]) end
  local token = next_token(clock())
  own_write(ARGV[1], ARGV[3], token, 0, ARGV[3])
  return token
end
if not moving and fits(reads) and redis.call('EXISTS', QUEUE) == 0 then return own_now() end
local RUN = 100 -- so many readers are granted by one script at most: the first who is left asks for the rest
local function others_wait()
  local length = redis.pcall('LLEN', QUEUE)
  return type(length) == 'number' and math.min(length, 1) or 0
end
local function owner_reply(token, reserved)
  local others = (mode == 'read' or reserved > 0) and others_wait() or 0
  if reserved == 0 and others == 0 then return token end
  return {0, token, reserved, others}
end
local function serve(self, queues)
  local granted, messages, token, reserved, left_out = 0, {}, nil, nil, false
  local now = clock()
  while granted < RUN do
    local entry = not (moving and moving.lacks(QUEUE)) and redis.call('LINDEX', QUEUE, 0)
    if not entry then break end
    local client, number, lease, demand = string.match(entry, '^1:([^:]+):(%d+):(%d+):(%d+s?)$')
    if client and (#lease > 10 or tonumber(lease) == 0) then client = nil end -- nobody of ours wrote this
    if client and mode == 'write' then break end -- it fits nobody
    local reads = client and is_read(demand)
    local lives = client and (entry == self or alive(client))
    if lives and not fits(reads) then break end
    if lives and mode == 'read' and redis.call('HEXISTS', NAME, client .. ':' .. number) == 1 then
      lives = false
    end
    if not lives then
      redis.call('LPOP', QUEUE)
    else
      local id, ms = client .. ':' .. number, lease
      if reads and undeclared and undeclared(timeout_of(id)) then
        left_out = true
        break
      end
      if moving then
        if reads and entry ~= self then break end -- nobody knows whether its timeout may be made here
        moving.need(TOKEN)
        moving.need(STATE)
      end
      if granted == 0 then redis.call('LTRIM', QUEUE, 0, -1) end
      if entry ~= self then ms = math.min(tonumber(lease), SHORT) end
      local own_token, text, own_reserved = nil, nil, 0
      if reads then
        own_token = own_read(id, lease, ms)
        text = own_token
      else
        text, own_reserved = next_token(now, tonumber(demand))
        own_token = text
        own_write(id, lease, text, own_reserved, ms)
      end
      redis.call('LPOP', QUEUE)
      granted = granted + 1
      if entry == self then
        token, reserved = own_token, own_reserved
      else
        if ms < SHORT then note_lease(lease) end
        messages[#messages + 1] = {client, number, text, own_reserved, ms}
      end
      if not reads then break end
    end
  end
  if granted > 0 and mode == 'read' then redis.pcall('HDEL', STATE, 'ends') end -- see rwlock/crowd.lua
  local others = granted > 0 and (queues and 1 or others_wait()) or 0
  for _, m in ipairs(messages) do tell_grant(m[1], 'r', m[2], m[3], m[4], others, now, m[5]) end
  if left_out or granted == RUN and others == 1 then
    local client, number = string.match(redis.call('LINDEX', QUEUE, 0) or '', '^1:([^:]+):(%d+):')
    if client then tell(client, 'a', number) end
  end
  return granted, token, reserved
end
local function hand_over()
  mode = nil
  local done, granted = pcall(serve)
  if done and granted > 0 then return end
  drop_former()
  redis.call('DEL', NAME)
end
local function give_back(ids)
  local wrote, seen = false, {}
  for _, id in ipairs(mode and ids or {}) do
    for _, field in ipairs({id, id .. ':write'}) do
      if not seen[field] and redis.call('HEXISTS', NAME, field) == 1 then
        former[#former + 1], seen[field] = field, true
        wrote = wrote or field ~= id
      end
    end
  end
  if not mode or former[1] and redis.call('HLEN', NAME) == #former + 1 then return hand_over() end
  if wrote then -- a writer of Redisson that reads as well
    redis.call('HSET', NAME, 'mode', 'read')
    mode = 'read'
  end
  drop_former()
  pcall(serve)
end
local CROWD = 64
local function known_end(entry, longest)
  if not entry or not longest or redis.call('HLEN', NAME) <= CROWD then return nil end
  local hidden = moving and moving.lacks(QUEUE)
  local head = not hidden and redis.call('LINDEX', QUEUE, 0)
  if not hidden and (not head or head == entry) then return nil end
  if moving then return SHORT end -- what is on the other side cannot be looked at
  local ends = redis.call('HGET', STATE, 'ends')
  if not ends or #ends ~= 13 then return nil end
  local left = (tonumber(ends) or 0) - math.floor(clock() / 1000)
  return left > 0 and left <= longest and left or nil
end
local function note_end(readers, left)
  if readers <= CROWD or left <= 0 or moving then return end
  redis.pcall('HSET', STATE, 'ends', decimal(math.floor(clock() / 1000) + left))
end
local MOST = 64 -- so many holds of one reader are looked at
local HIDDEN = 100 -- ms after which to look again for a lease that cannot be seen
local function reader_left(id, count, longest)
  local most
  for n = 1, math.min(count, MOST) do
    local key = timeout_of(id, n)
    if undeclared and undeclared(key) then return HIDDEN end
    local left = redis.pcall('PTTL', key)
    if type(left) ~= 'number' then return HIDDEN end -- on the other side of a slot that is moving
    if left == -1 then return -1 end
    if count == 1 and longest and left > longest then
      local lease = redis.pcall('GET', key)
      lease = type(lease) == 'string' and #lease <= 10 and tonumber(lease)
      if lease and lease > 1 and left > lease then
        redis.call('PEXPIRE', key, lease)
        left = lease
      end
    end
    if left >= 0 then most = math.max(most or 0, left) end -- 0: it ends now; -2: it is over
  end
  return most
end
local unanswered = false -- the script calls the others: see shared/call.lua
local function drop_entries(ids)
  local clients = {}
  for _, id in ipairs(ids) do
    local client = string.match(id, '^([^:]+):%d+$')
    if client then clients[client], unanswered = true, true end
  end
  if not unanswered then return end
  for _, entry in ipairs(of_unresponsive(clients)) do redis.call('LREM', QUEUE, 1, entry) end
end
local function first_reader_end(longest)
  local fields, first, live, gone = redis.call('HGETALL', NAME), nil, 0, {}
  for i = 1, #fields, 2 do
    local id, count = fields[i], tonumber(fields[i + 1])
    if count and id ~= 'mode' and not string.find(id, ':write', -6, true) then
      local left = reader_left(id, count, longest)
      if left or moving then
        live = live + 1
        if (left or HIDDEN) >= 0 then first = math.min(first or math.huge, left or HIDDEN) end
      else
        gone[#gone + 1] = id
      end
    end
  end
  if live == 0 then
    former = gone
    mode = nil
  else
    for i = 1, #gone, 1000 do redis.call('HDEL', NAME, unpack(gone, i, math.min(i + 999, #gone))) end
  end
  if gone[1] then drop_entries(gone) end
  if first then note_end(live, first) end
  return live > 0 and (first or -1) or nil
end
local function holder_left(entry)
  local _, _, longest = state_token()
  if mode == 'read' then return known_end(entry, longest) or first_reader_end(longest) end
  if mode == 'write' then
    local left = redis.call('PTTL', NAME)
    local ours = longest and (left > longest or left == -1) and redis.call('HGET', STATE, 'writer')
    if ours and redis.call('HEXISTS', NAME, ours .. ':write') == 1 then
      redis.call('PEXPIRE', NAME, longest)
      left = longest
    end
    if left ~= -2 then return left end
    mode = nil
  end
  local short = redis.call('HGET', STATE, 'short')
  if short and short ~= '' then
    redis.call('HSET', STATE, 'short', '')
    drop_entries({short})
  end
  return nil
end
local TOLD = 2500
local function tell_holders(kind, fields, token)
  for i = 1, math.min(#fields, TOLD) do
    local client, number = string.match(fields[i], '^([^:]+):(%d+)')
    if client then tell(client, kind, token and number .. ' ' .. token or number) end
  end
end
local REPEATED = 250
local function tell_want(repeated)
  tell_holders('w', redis.call('HRANDFIELD', NAME, repeated and REPEATED or TOLD))
end
local function next_place(now) return tonumber((next_token(now))) end
local LONGEST, FAR = 100000, 64
local function writer_hears()
  local state = redis.call('HMGET', STATE, 'token', 'writer', 'watched')
  local _, reserved = parse_token(state[1])
  return reserved > 0 or state[2] and state[2] ~= '' and state[2] == state[3]
end
local id = ARGV[1]
local holds = redis.call('HMGET', NAME, id, id .. ':write')
if holds[2] then
  local token, reserved = state_token()
  if token then
    redis.call('PEXPIRE', NAME, ARGV[3]) -- first: Redis never refuses it for lack of memory
    redis.call('HSET', STATE, 'short', '')
    return owner_reply(token, reserved)
  end
elseif holds[1] then
  return owner_reply(own_read(id, ARGV[3], ARGV[3]), 0)
end
local entry = '1:' .. id .. ':' .. ARGV[3] .. ':' .. (ARGV[5] or '0')
if how == 'again' then
if redis.pcall('EXISTS', CALLED) == 1 then redis.pcall('HDEL', CALLED, (string.match(ARGV[1], '^[^:]+'))) end
end
local left = holder_left(entry)
local granted, token, reserved = serve(entry)
if unanswered then
if not answering and (not SLOTS or type(redis.pcall('EXISTS', NAME, CALLED)) == 'number') then
  redis.pcall('DEL', CALLED)
  for client, entry in pairs(tell_waiting('a', '', ARGV[1])) do redis.pcall('HSET', CALLED, client, entry) end
  redis.pcall('PEXPIRE', CALLED, QUEUE_KEPT)
end
end
if token then return owner_reply(token, reserved) end
local now = clock()
if fits(reads) and others_wait() == 0 then return own_now() end
if granted > 0 then left = holder_left() end
if former[1] then -- the lock is free, and the next who waits cannot be granted it here
  drop_former()
  redis.call('DEL', NAME)
end
if how == 'try' then return {-1, left or 0, now} end
if moving then moving.need(QUEUE) end
local sequence, place = 0, how == 'again' and redis.call('LPOS', QUEUE, entry)
if not place then
  place = redis.call('LLEN', QUEUE)
  if place >= tonumber(ARGV[6] or LONGEST) then return {-2, place, now} end
  if moving then moving.need(TOKEN) end
  sequence = next_place(now)
  redis.call('RPUSH', QUEUE, entry)
end
if place == 0 and (mode == 'read' or sequence > 0 and writer_hears()) then
  tell_want(sequence == 0)
end
redis.call('PEXPIRE', QUEUE, QUEUE_KEPT)
note_lease(ARGV[3], id)
if place < FAR then return {sequence, ask_in(left or 0), now} end
return {sequence, ask_in(left or 0), now, 0, place}
