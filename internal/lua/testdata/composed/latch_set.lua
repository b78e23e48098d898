--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local DONE = 'latchkey_done:{' .. NAME .. '}'
local NEWS = 'redisson_countdownlatch__channel__{' .. NAME .. '}'
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
local before = recorded('^[01]$')
if before then return forget_answered(tonumber(before)) end
local RECORD = 'latchkey_latch:{' .. NAME .. '}'
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
local NEW_COUNT, ZERO_COUNT = '1', '0' -- what Redisson publishes
local DAY, KEPT = 86400000, 600000
local MARGIN = 1000
if moving then moving.need(RECORD) end
local count = redis.call('GET', NAME)
if count and not (string.find(count, '^[1-9]%d*$')
    and (#count < 19 or #count == 19 and count <= '9223372036854775807')) then
  error('WRONGTYPE ' .. NAME .. ' holds data that is not a latch')
end
local latch
do
  local f = redis.call('HMGET', RECORD, 'generation', 'first', 'bad', 'phase', 'ttl', 'until')
  latch = {
    generation = number_of(f[1]), first = number_of(f[2]), bad = f[3] or '', phase = f[4] or 'n',
    ttl = number_of(f[5]), ends = number_of(f[6]),
  }
  if not (latch.generation and latch.first and latch.ttl and latch.ends
      and is_list(latch.bad) and string.find(latch.phase, '^[nsod]$'))
    or latch.ttl > 4e12 or f[1] == false and redis.call('EXISTS', RECORD) == 1 then
    error('WRONGTYPE ' .. RECORD .. ' holds data that is not of a latch')
  end
end
local function forget_participants()
  local all = redis.call('HKEYS', RECORD)
  for i = 1, #all, 1000 do
    local gone = {}
    for j = i, math.min(i + 999, #all) do
      if string.sub(all[j], 1, 2) == 'p:' then gone[#gone + 1] = all[j] end
    end
    if #gone > 0 then redis.call('HDEL', RECORD, unpack(gone)) end
  end
end
local function shut(ttl)
  if latch.phase == 'x' then spoil(latch, 'x') end
  succeed(latch)
  latch.phase, latch.ttl = 's', ttl
  latch.ends = ttl > 0 and now + ttl or 0
  redis.call('PERSIST', RECORD) -- first: Redis never refuses it for lack of memory, nor what follows
  forget_participants()
  redis.call('HSET', RECORD, 'generation', decimal(latch.generation), 'first', decimal(latch.first),
    'bad', latch.bad, 'phase', 's', 'ttl', decimal(ttl), 'until', decimal(latch.ends))
  if ttl > 0 then redis.call('PEXPIRE', RECORD, decimal(2 * ttl + KEPT)) end
end
local function open()
  local stays = latch.ttl > 0 and latch.ttl or DAY
  latch.phase, latch.ends = 'o', now + stays
  redis.call('PEXPIRE', RECORD, decimal(stays + KEPT))
  redis.call('HSET', RECORD, 'phase', 'o', 'until', decimal(latch.ends))
end
do
  local lasts = latch.ttl > 0 and latch.ttl or DAY
  if (latch.phase == 's' or latch.phase == 'o') and latch.ends > now + lasts then
    latch.ends = now + lasts
    redis.call('PEXPIRE', RECORD, decimal(2 * lasts + KEPT))
    redis.call('HSET', RECORD, 'until', decimal(latch.ends))
    if redis.call('PTTL', NAME) > lasts + MARGIN then
      redis.call('PEXPIRE', NAME, decimal(lasts + MARGIN))
    end
  end
end
if latch.phase == 'o' and now >= latch.ends then
  latch.phase = 'd'
elseif latch.phase == 's' and latch.ends > 0 and now >= latch.ends then
  latch.phase = 'x' -- expired
  if now >= latch.ends + latch.ttl then
    spoil(latch, 'x')
    latch.phase = 'd'
  end
  if redis.call('PTTL', NAME) ~= -1 then count = false end
elseif latch.phase == 's' and not count then
  open() -- a Java process has counted it down, or deleted it: both release its waiters
end
if count and latch.phase ~= 's' then shut(0) end -- a Java process has set it
local function round()
  local ends = latch.phase == 's' and latch.ends > 0 and latch.ends - now or -1
  return {latch.phase, latch.generation, latch.first, latch.bad, ends, latch.phase == 's' and count or '0'}
end
local may = latch.phase ~= 's' and (ARGV[5] == 'again' or latch.phase ~= 'o')
record(may and '1' or '0') -- when memory is short, Redis refuses this, and nothing is done
if may then
  local ttl = tonumber(ARGV[4])
  shut(ttl)
  if ttl > 0 then
    redis.call('SET', NAME, ARGV[3], 'PX', decimal(ttl + MARGIN))
  else
    redis.call('SET', NAME, ARGV[3])
  end
  publish(NEW_COUNT)
end
return forget_answered(may and 1 or 0)
