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
local HELD = 60000
local function first_of_all(newest)
  local tick, missed = following(last), 0
  if listed then
    local all = {}
    for i = 1, #listed do
      if listed[i] > last and listed[i] <= newest then all[#all + 1] = listed[i] end
    end
    missed = math.max(0, #all - MADE_UP)
    tick = all[missed + 1]
    if missed > 0 then last = tick - 1 end
    return tick, missed
  end
  missed = math.max(0, math.floor((newest - tick) / period + 0.5) + 1 - MADE_UP)
  tick = tick + missed * period
  last = math.max(last, tick - period)
  return tick, missed
end
local function begin(mine, way, grace, most, copy, who, asking)
  local dropped, missed = 0, 0
  if token > mine or token == mine and (back == mine or not (tick and copy)) then return {'s', decimal(token), 0, 0, 0} end
  if token == mine then return {'r', decimal(tick), attempt, 0, 0} end
  redis.call('HDEL', RUN, 'told', 'by') -- first: Redis never refuses it for lack of memory, nor what follows
  local paused = paused_for(micros)
  if paused > 0 then
    keep()
    return {'n', paused, 0, 0, 0}
  end
  told_ended('d', '')
  if tick and most > 0 and attempt - gave >= (row > 0 and 1 or most) then
    pass(tick)
    dropped, tick, row = tick, nil, row + 1
    holds = math.min(HELD * 2 ^ math.min(row - 1, 10), LONGEST)
    held = now + holds
    redis.call('HSET', RUN, 'row', decimal(row), 'held', decimal(held), 'holds', decimal(holds))
  end
  if not tick then
    attempt, gave = 0, 0
    local newest = latest()
    if held_off() == 0 and newest > last then
      if way == 'all' then
        tick, missed = first_of_all(newest)
      elseif way == 'once' or now - due(newest) <= grace then
        tick = newest
      else
        last = newest
      end
    end
  end
  keep()
  if not tick then
    redis.call('HDEL', RUN, 'tick', 'attempt', 'gave')
    if dropped > 0 then token = mine end -- the run that is given up is stale now
    redis.call('HSET', RUN, 'token', decimal(token))
    return {'n', rest(), 0, decimal(dropped), 0}
  end
  redis.call('HSET', RUN, 'token', decimal(mine), 'tick', decimal(tick), 'attempt', decimal(attempt + 1),
    'gave', decimal(gave), 'first', decimal(first > 0 and first or mine))
  told_begun(tick, attempt + 1, who)
  if asking then redis.call('HSET', RUN, 'asker', asking) else redis.call('HDEL', RUN, 'asker') end
  return {'r', decimal(tick), attempt + 1, decimal(dropped), missed}
end
need_listed(ARGV[5] == 'all')
return begin(tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1', ARGV[9])
