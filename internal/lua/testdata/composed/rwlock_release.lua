--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local STATE = 'latchkey_rwlock:{' .. NAME .. '}'
local LEASES = '{' .. NAME .. '}:'
if ARGV[3] and ARGV[3] ~= '' then redis.pcall('LREM', QUEUE, 0, ARGV[3]) end
local id, rests = ARGV[1], ARGV[4] and ARGV[4] ~= '0'
if not rests and not moving
  and (SLOTS and redis.pcall('EXISTS', NAME, QUEUE) == 1 or not SLOTS and redis.pcall('EXISTS', QUEUE) == 0) then
  local how = redis.call('HGET', NAME, 'mode')
  local writes = how == 'write'
  local fields = (writes or how == 'read') and redis.call('HLEN', NAME) or 0
  if (fields == 2 or fields > 2 and not writes)
    and redis.call('HDEL', NAME, writes and id .. ':write' or id) == 1 then
    local timeout = LEASES .. id .. ':rwlock_timeout:1'
    if writes then
      redis.call('DEL', NAME)
      redis.pcall('HDEL', STATE, 'writer', 'short') -- it has given the lock back
    elseif fields == 2 then
      redis.call('DEL', NAME, timeout)
    else
      redis.call('DEL', timeout)
    end
    return 1
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
local holds = redis.call('HMGET', NAME, id, id .. ':write')
local owned = (holds[1] or holds[2]) and 1 or 0
if owned == 0 then
  give_back({}) -- without this entry, those behind it may fit
  return 0
end
if rests then
  local rest = id .. ':rest'
  if moving and not holds[2] then moving.need(timeout_of(rest)) end
  if holds[2] then
    redis.call('PEXPIRE', NAME, ARGV[4])
    redis.call('HSET', NAME, rest .. ':write', '1')
    redis.call('HDEL', NAME, id .. ':write')
    redis.call('PEXPIRE', NAME, ARGV[4]) -- once more, as in lock/release.lua
    redis.pcall('HSET', STATE, 'short', '', 'writer', rest)
  else
    keep(ARGV[4])
    redis.call('PEXPIRE', timeout_of(id), ARGV[4])
    redis.call('SET', timeout_of(rest), ARGV[4], 'PX', ARGV[4])
    redis.call('HSET', NAME, rest, '1')
    redis.call('HDEL', NAME, id)
    redis.call('DEL', timeout_of(id))
  end
  local done, number, reserved, longest = pcall(state_token)
  if done and number and (not longest or longest < tonumber(ARGV[4])) then
    redis.pcall('HSET', STATE, 'token', token_field(number, reserved, ARGV[4]))
  end
  tell_waiting('l', ' ' .. ARGV[4])
  return 1
end
give_back({id})
return 1
