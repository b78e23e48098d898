--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local ARGV = {unpack(ARGV)} -- some servers refuse changes of the globals
local DONE = 'latchkey_done:{' .. NAME .. '}'
local NEWS = 'latchkey_barrier:{' .. NAME .. '}'
local ONCE_KEPT = '600000' -- ms
local function recorded(...)
  local key = DONE .. ':' .. ARGV[1]
  if moving then
    moving.need(key)
    for _, companion in ipairs(COMPANIONS) do
      if companion ~= DONE then moving.need(companion) end
    end
  end
  local outcome = redis.call('GET', key)
  if not outcome then return nil end
  local known = false
  for _, pattern in ipairs({...}) do known = known or string.find(outcome, pattern) end
  for number in string.gmatch(outcome, '%d+') do
    known = known and (#number < 19 or #number == 19 and number <= '9223372036854775807')
  end
  if known then return outcome end
  error('WRONGTYPE ' .. key .. ' does not say what came of a command')
end
local function record(outcome) redis.call('SET', DONE .. ':' .. ARGV[1], outcome, 'PX', ONCE_KEPT) end
local function forget_answered(reply)
  if ARGV[2] ~= '' then
local client, single = string.match(ARGV[1], '^[^:]+:'), string.match(ARGV[2], '^(%d+) ?$')
if single and not moving then
  redis.call('DEL', DONE .. ':' .. client .. single)
else
  local gone = {}
  for number in string.gmatch(ARGV[2], '%d+') do gone[#gone + 1] = DONE .. ':' .. client .. number end
  for i = 1, moving and #gone or 0 do redis.pcall('DEL', gone[i]) end -- those on the other side expire
  if not moving then redis.call('DEL', unpack(gone)) end
end
  end
  return reply
end
local function exempt_from_memory_limit() redis.pcall('DEL', DONE) end
local function publish(message) redis.pcall(VERB, NEWS, message) end
local function known() return recorded('^%d+:%d+$', '^%-?[01]$', '^given up$') end
if moving and ARGV[6] ~= '' then moving.need(DONE .. ':' .. ARGV[6]) end
local ids, before = {ARGV[1], unpack(ARGV, 7)}, {}
for i, id in ipairs(ids) do
  ARGV[1] = id
  before[i] = known() or false
end
local ARRIVALS = 'latchkey_arrivals:{' .. NAME .. '}'
local MEMBERS = 'latchkey_members:{' .. NAME .. '}'
local MOST_BAD = 32 -- generations that the list holds
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) -- ms
local function number_of(text, digits)
  if not text then return 0 end
  return #text <= (digits or 16) and string.find(text, '^%d+$') and tonumber(text) or nil
end
local function is_list(bad) return bad == '' or string.gsub(bad, '%d+%a ', '') == '' and #bad < 1000 end
local function decimal(number) return string.format('%d', number) end
local function clock() return time[1] * 1000000 + time[2] end
local function spoil(state, why)
  state.bad = state.bad .. decimal(state.generation) .. why .. ' '
  local _, n = string.gsub(state.bad, ' ', '')
  if n > MOST_BAD then
    local oldest, rest = string.match(state.bad, '^(%d+)%a (.*)$')
    state.first, state.bad = oldest + 1, rest
  end
end
local function succeed(state)
  if state.generation == 0 then
    state.generation = clock()
    state.first = state.generation
  else
    state.generation = state.generation + 1
  end
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
local KEPT = '172800000' -- ms that an idle barrier is remembered: two days, longer than any lease
local barrier
do
  local f = redis.call('HMGET', NAME, 'generation', 'first', 'bad', 'phase', 'parties', 'waiting',
    'leader', 'barrier', 'lease')
  barrier = {
    generation = number_of(f[1]), first = number_of(f[2]), bad = f[3] or '', phase = f[4] or 'n',
    parties = number_of(f[5], 9), waiting = number_of(f[6], 9), leader = f[7] or '',
    lease = number_of(f[9], 10),
  }
  local numbers = barrier.generation and barrier.first and barrier.parties and barrier.waiting
    and barrier.lease
  if not (numbers and is_list(barrier.bad) and string.find(barrier.phase, '^[nwab]$'))
    or f[8] ~= '1' and (f[8] or redis.call('EXISTS', NAME) == 1) then
    error('WRONGTYPE ' .. NAME .. ' holds data that is not a barrier')
  end
end
if barrier.phase == 'n' and not (moving and moving.lacks(MEMBERS)) then
  local last = redis.call('ZRANGE', MEMBERS, '-1', '-1', 'WITHSCORES')[2]
  barrier.lease = math.max(0, (tonumber(last or '0') or 0) - now)
  if barrier.lease > 1e10 then barrier.lease = 0 end
end
if moving and barrier.waiting > 0 then moving.need(ARRIVALS) end
local function is_waiting() return barrier.phase == 'w' or barrier.phase == 'a' end
local function arrived(client)
  local n = number_of(redis.call('HGET', NAME, 'c:' .. client), 9)
  return n or error('WRONGTYPE ' .. NAME .. ' holds data that is not a barrier')
end
local function first_end(set)
  if moving and moving.lacks(set) then return nil end
  local first = redis.call('ZRANGE', set, '0', '0', 'WITHSCORES')
  return first[2] and (tonumber(first[2]) or math.huge) - now
end
local function ends()
  if not is_waiting() then return -1 end
  local first = first_end(MEMBERS) or math.huge
  if barrier.waiting > 0 then first = math.min(first, first_end(ARRIVALS) or 0) end
  return first < math.huge and first or -1
end
local function clear(phase)
  local here = not (moving and moving.lacks(ARRIVALS))
  if here and (barrier.waiting > 0 or redis.call('TYPE', ARRIVALS).ok == 'zset') then
    redis.call('DEL', ARRIVALS)
  end
  redis.call('PERSIST', NAME) -- Redis never refuses it for lack of memory, nor what follows
  barrier.phase, barrier.parties, barrier.waiting, barrier.leader = phase, 0, 0, ''
  redis.call('HSET', NAME, 'barrier', '1',
    'generation', decimal(barrier.generation), 'first', decimal(barrier.first), 'bad', barrier.bad,
    'phase', phase, 'parties', '0', 'waiting', '0', 'leader', '', 'lease', decimal(barrier.lease))
  redis.call('PEXPIRE', NAME, KEPT)
  local gone = {}
  for _, field in ipairs(redis.call('HKEYS', NAME)) do
    if string.sub(field, 1, 2) == 'c:' then gone[#gone + 1] = field end
  end
  for i = 1, #gone, 1000 do redis.call('HDEL', NAME, unpack(gone, i, math.min(i + 999, #gone))) end
end
local function advance()
  succeed(barrier)
  clear('w')
end
local function break_generation(why)
  spoil(barrier, why)
  clear('b')
end
local SHORT = 2000 -- ms: nobody waits longer without asking
local sooner = false -- a lease ends before everybody who waits asks again
local function extend(set, id, ms, before)
  if moving then moving.need(set) end
  before = before or redis.call('ZSCORE', set, id)
  local after = now + ms + 1
  redis.call('ZADD', set, decimal(after), id)
  redis.call('PEXPIRE', set, KEPT)
  if tonumber(ms) > barrier.lease then
    barrier.lease = tonumber(ms)
    if barrier.phase ~= 'n' then redis.call('HSET', NAME, 'lease', ms) end -- otherwise clear writes it
  end
  if tonumber(ms) < SHORT and not (before and tonumber(before) <= after) then sooner = true end
end
local DEAD = 'dead' -- the record of a membership whose lease was over
local function belong(id, ms, asked)
  if moving then moving.need(MEMBERS) end
  local before = redis.call('ZSCORE', MEMBERS, id)
  if not before then
    if moving then moving.need(DONE .. ':' .. id) end
    local record = redis.call('GET', DONE .. ':' .. id)
    if record and not (asked and record == DEAD) then return end
    if record then redis.call('DEL', DONE .. ':' .. id) end
  end
  extend(MEMBERS, id, ms, before)
end
local function tell()
  redis.pcall(VERB, NEWS, table.concat({
    '1 r', barrier.phase, decimal(barrier.generation), decimal(barrier.first), decimal(ends()), barrier.bad,
  }, ' '))
end
local over = false -- this script has ended a generation, and no message says so yet
do
  local member = first_end(MEMBERS)
  local dead = member and member <= 0 and not moving
  if dead then
    local gone = redis.call('ZRANGEBYSCORE', MEMBERS, '-inf', decimal(now))
    local wanted = {}
    for _, id in ipairs(undeclared and gone or {}) do
      if undeclared(DONE .. ':' .. id) then wanted[#wanted + 1] = id end
    end
    if wanted[1] then return {err = demand(wanted)} end
    redis.call('ZREMRANGEBYSCORE', MEMBERS, '-inf', decimal(now))
    for _, id in ipairs(gone) do redis.call('SET', DONE .. ':' .. id, DEAD, 'PX', KEPT) end
  end
  if is_waiting() and (dead or barrier.waiting > 0 and (first_end(ARRIVALS) or 0) <= 0) then
    break_generation('l')
    over = true
  end
end
local function tell_what_changed()
  if over or sooner and barrier.waiting > 0 then tell() end
end
local function round()
  return {
    barrier.phase, barrier.generation, barrier.first, barrier.bad, ends(), tostring(barrier.waiting),
    barrier.parties,
  }
end
local function refuse(why)
  record(why)
  return why, 0, 0
end
local function arrive(before)
  if before then
    local generation, index = string.match(before, '^(%d+):(%d+)$')
    if not generation then return tonumber(before) or -2, 0, 0 end
    generation = tonumber(generation)
    local leads = barrier.generation == generation and barrier.phase == 'a' and barrier.leader == ARGV[1]
    return generation, tonumber(index), leads and 1 or 0
  end
  if barrier.phase == 'b' then return refuse(0) end
  local parties = tonumber(ARGV[3])
  if barrier.waiting > 0 and barrier.parties ~= parties then return refuse(-1) end
  if barrier.phase == 'a' then return -3, 0, 0 end
  local index, last = barrier.waiting, barrier.waiting + 1 >= parties
  local waits = not last or ARGV[5] == '1'
  if waits and index == 0 then
    local kind = redis.call('TYPE', ARRIVALS).ok
    if kind ~= 'none' and kind ~= 'zset' then
      error('WRONGTYPE ' .. ARRIVALS .. ' holds data that is not of a barrier')
    end
  end
  local client = string.match(ARGV[1], '^[^:]+')
  arrived(client) -- fails unless that is a number
  if barrier.phase == 'n' then succeed(barrier) end
  local generation = barrier.generation
  record(decimal(generation) .. ':' .. index) -- when memory is short, Redis refuses this, and nothing is done
  if barrier.phase == 'n' then clear('w') end
  if ARGV[6] ~= '' then belong(ARGV[6], ARGV[4], true) end
  local leads = 0
  if waits then
    barrier.parties, barrier.waiting = parties, index + 1
    if last then barrier.phase, barrier.leader, leads = 'a', ARGV[1], 1 end
    redis.call('HSET', NAME, 'parties', parties, 'waiting', barrier.waiting,
      'phase', barrier.phase, 'leader', barrier.leader)
    redis.call('HINCRBY', NAME, 'c:' .. client, '1')
    redis.call('PEXPIRE', NAME, KEPT)
    extend(ARRIVALS, client, ARGV[4])
    if index == 0 then sooner = false end -- no other waits
  else
    advance()
    over = true
  end
  return generation, index, leads
end
local reply = {}
for i, id in ipairs(ids) do
  ARGV[1] = id
  local generation, index, leads = arrive(before[i])
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = generation, index, leads
end
tell_what_changed()
reply[#reply + 1] = round()
return forget_answered(reply)
