--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local RUN = 'latchkey_every:{' .. NAME .. '}'
local PAUSE = 'latchkey_pause:{' .. NAME .. '}'
local PAUSE_ASKED = 10000 -- ms after which to look again at most: somebody may have resumed the name
local never_paused = moving and moving.gone(PAUSE)
local function paused_for(moment)
  local ends = not never_paused and redis.call('HGET', PAUSE, 'until')
  if not ends then return 0 end
  if #ends > 16 or not string.find(ends, '^%d+$') then error('WRONGTYPE ' .. PAUSE .. ' holds data that is not of a pause') end
  if ends == '0' then return PAUSE_ASKED end
  return math.max(0, math.min(PAUSE_ASKED, math.ceil((ends - moment) / 1000)))
end
local AHEAD = 600000 -- ms that the clock may be set back with no tick run twice
local LONGEST = 3600000 -- ms for which no tick begins at most
local KEPT = 604800000 -- ms, a week: the record is kept for so long and two periods
if moving then moving.need(RUN) end
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000) -- ms
local f = redis.call('HMGET', RUN, 'last', 'token', 'tick', 'attempt', 'told', 'by', 'gave', 'row', 'held', 'holds',
  'won', 'first', 'back', 'asker', 'gone')
local period, longest, seed = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local listed = period == 0 and {}
if listed then
  for at in string.gmatch(ARGV[3], '%d+') do listed[#listed + 1] = tonumber(at) end
end
local function number_of(text)
  if text and (#text > 16 or not string.find(text, '^%d+$') or tonumber(text) > 9007199254740990) then
    error('WRONGTYPE ' .. RUN .. ' holds data that is not of a job')
  end
  return text and tonumber(text)
end
local last, token, tick = number_of(f[1]), number_of(f[2]) or 0, number_of(f[3])
local attempt, told, gave, row = number_of(f[4]), number_of(f[5]), number_of(f[7]) or 0, number_of(f[8]) or 0
local held, holds = number_of(f[9]) or 0, number_of(f[10]) or 0
local won, first, back = number_of(f[11]) or 0, number_of(f[12]) or 0, number_of(f[13])
local asker, gone = f[14], f[15]
if tick and (tick == 0 or not attempt or attempt == 0) or not last and redis.call('EXISTS', RUN) == 1 then
  error('WRONGTYPE ' .. RUN .. ' holds data that is not of a job')
end
local function decimal(number) return string.format('%.0f', number) end
local function due(at)
  if longest == 0 then return at end
  return at + math.floor((at / period % 1000003 * 7919 + seed) % 65521 / 65521 * longest)
end
local function latest()
  for i = #(listed or ''), 1, -1 do
    if listed[i] <= now then return listed[i] end
  end
  local at = math.floor(now / period) * period
  return due(at) <= now and at or at - period
end
local function following(at)
  for i = 1, #(listed or '') do
    if listed[i] > at then return listed[i] end
  end
  return (math.floor(at / period) + 1) * period
end
local MADE_UP = 1000 -- ticks at most, when more were missed
local function need_listed(all)
  if not listed then return end
  local first, final = listed[1], listed[#listed]
  period = final and final - (listed[#listed - 1] or final) or 0 -- as far as the record is kept, and the clock believed
  if period == 0 or first > now or final <= now or last and final <= last and last <= now + period + AHEAD
    or all and last and first > last and #listed < MADE_UP + 2 then
    error('LATCHKEY_TICKS ' .. decimal(now) .. ' ' .. decimal(last or 0) .. ' .')
  end
end
need_listed()
local function held_off()
  local most = math.min(holds, LONGEST)
  if held > now + most then
    held = now + most
    redis.call('HSET', RUN, 'held', decimal(held))
  end
  return math.max(held - now, 0)
end
local function rest() return math.max(held_off(), due(following(last)) - now, 0) end
local function far(at) return at > now + period + AHEAD end
local fresh = not last or far(last)
if fresh then last = latest() end
local function pass(at)
  if not far(at) then last = math.max(last, at) end
end
local function keep()
  redis.call('HSET', RUN, 'last', decimal(last), 'next', decimal(due(following(math.max(last, tick or 0)))))
  redis.call('PEXPIRE', RUN, decimal(KEPT + 2 * period))
end
local RUNS = 'latchkey_runs:{' .. NAME .. '}'
if moving then moving.need(RUNS) end
local newest = redis.call('LINDEX', RUNS, 0) or ''
local function told_begun(tick, attempt, who)
  redis.call('LPUSH', RUNS, table.concat({decimal(tick), decimal(attempt), decimal(now), '0', 'r', who, ''}, '\t'))
  redis.call('LTRIM', RUNS, 0, 10)
  redis.call('PEXPIRE', RUNS, decimal(KEPT + 2 * period))
end
local function told_ended(how, text)
  local run, began, who = string.match(newest, '^(%d+\t%d+\t(%d+)\t)0\tr\t([^\t]*)\t$')
  if not run then return end
  newest = ''
  if not how then
    redis.call('LPOP', RUNS)
    return
  end
  local took = how == 'd' and 0 or math.max(0, now - began)
  redis.call('LSET', RUNS, 0, table.concat({run .. decimal(took), how, who, text}, '\t'))
end
local mine = tonumber(ARGV[4])
if mine == 0 and asker == ARGV[6] then mine = token end
if mine == 0 then
  redis.call('HSET', RUN, 'gone', ARGV[6])
  keep()
elseif token < mine and ARGV[5] == '0' then
  redis.call('HSET', RUN, 'token', ARGV[4], 'back', ARGV[4], 'first', decimal(first > 0 and first or mine))
  keep()
elseif token == mine and tick and back ~= mine then
  redis.call('HSET', RUN, 'back', decimal(mine))
  if ARGV[5] == '1' then
    told_ended('g', '')
    redis.call('HSET', RUN, 'gave', decimal(gave + 1))
    return 1
  end
  told_ended()
  if attempt > 1 then
    redis.call('HSET', RUN, 'attempt', decimal(attempt - 1))
  else
    redis.call('HDEL', RUN, 'tick', 'attempt', 'gave')
  end
end
return 1
