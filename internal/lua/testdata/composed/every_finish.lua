--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local RUN = 'latchkey_every:{' .. NAME .. '}'
local AHEAD = 600000 -- ms that the clock may be set back with no tick run twice
local LONGEST = 3600000 -- ms for which no tick begins at most
local KEPT = 604800000 -- ms, a week: the record is kept for so long and two periods
if moving then moving.need(RUN) end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) -- ms
local f = redis.call('HMGET', RUN, 'last', 'token', 'tick', 'attempt', 'told', 'by', 'gave', 'row', 'held', 'holds',
  'won', 'first', 'back', 'asker', 'gone')
local period, longest, seed = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
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
  local at = math.floor(now / period) * period
  return due(at) <= now and at or at - period
end
local function following(at) return (math.floor(at / period) + 1) * period end
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
local function keep() redis.call('PEXPIRE', RUN, decimal(KEPT + 2 * period)) end
local mine = tonumber(ARGV[4])
if token ~= mine then
  if won == mine then return {1, rest()} end
  return {first > 0 and mine >= first and won < mine and 0 or 2, 0}
end
if tick then
  pass(tick)
  if ARGV[5] == 'skip' then last = math.max(last, latest()) end -- what became due meanwhile was missed
  redis.call('HDEL', RUN, 'tick', 'attempt', 'told', 'by', 'gave', 'row', 'held', 'holds', 'asker') -- first, as in every/begin.lua
  held = 0
  redis.call('HSET', RUN, 'last', decimal(last), 'won', ARGV[4])
  keep()
end
return {1, rest()}
