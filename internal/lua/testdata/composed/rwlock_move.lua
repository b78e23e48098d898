--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
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
local function parse_mode(text)
  if string.sub(text, 1, 3) ~= 'try' then return string.sub(text, 1, 5), false end
  if text == 'try' then return text, false end
  return 'try', clock() > string.sub(text, 5)
end
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local STATE = 'latchkey_rwlock:{' .. NAME .. '}'
local LEASES = '{' .. NAME .. '}:'
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
local _, late = parse_mode(ARGV[4])
if late then return {-6, 0, clock()} end
local id, old = ARGV[1], ARGV[5]
local holds = redis.call('HMGET', NAME, id, id .. ':write', old, old .. ':write')
local token
if holds[2] or holds[4] then
  if moving then moving.need(STATE) end
  token = state_token()
  if token then
    if not holds[2] and ARGV[6] then token = ARGV[6] end
    former = {old .. ':write'}
    own_write(id, ARGV[3], token, 0, ARGV[3])
  end
elseif holds[1] or holds[3] and redis.pcall('EXISTS', timeout_of(old)) ~= 0 then -- else its lease is over
  if moving then moving.need(timeout_of(id)) end
  former = {old}
  token = own_read(id, ARGV[3], ARGV[3])
end
if not token then return {-3, 0, clock()} end
note_lease(ARGV[3]) -- also those of its own client, which gets no answer as a waiter
return token
