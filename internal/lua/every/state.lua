-- state: where a job that runs at ticks has come to. Every script of a job reads it first. The lock of the
-- name decides who runs. This record decides which tick is next, and whose end of a run counts.
--
-- The server's clock decides what is due. Tick k is at k periods since the epoch. It is due a delay later,
-- which is the same for all processes: it follows from k.
--
-- RUN  HASH  last     ms since the epoch: all ticks up to this one are over
--            token    fencing token of the run that has begun last
--            tick     ms since the epoch: that run's tick; absent when the run is over
--            attempt  its number: how many runs of this tick have begun
--            told    ms since the epoch: when a process was told to take the lock; absent once it has begun
--            by       who that was
--            gave     how many runs of this tick have given up: their processes live
--            back     token of the run that said so last, or that it had not begun
--            row      how many ticks in a row were dropped, because their runs died; absent: none
--            held     ms since the epoch: no tick begins before, since the last ones were dropped
--            holds    ms from then: how long that was
--            won      token of the run that was finished last
--            first    token of the run with which the record begins: of those before it nothing is known
--            asker    owner id whose acquire has begun the run (every/acquire.lua); absent: a begin has, or it is over
--            gone     owner id whose acquire begins no run any more: the last one that said so
--            next     ms since the epoch: when the next tick is due, as far as it was known
-- ARGV  1 period, 2 longest delay, both in ms
--       3 a number that follows from the name: from it and the tick follows the delay
-- Or    1 0, 2 0, where no period says when ticks are
--       3 in ms since the epoch: ticks, one after the other, from the last that is due, or an earlier one, to
--         one that is not due. 0 as the first: there is none before
-- keys RUN
-- include shared/pause.lua

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

-- Reads a whole number of the record; nil when it is absent. None is greater than a token can be.
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

-- When a tick is due.
local function due(at)
  if longest == 0 then return at end
  return at + math.floor((at / period % 1000003 * 7919 + seed) % 65521 / 65521 * longest)
end

-- The last tick that is due. A delay is shorter than a period: so it is this one or the one before.
local function latest()
  for i = #(listed or ''), 1, -1 do
    if listed[i] <= now then return listed[i] end
  end
  local at = math.floor(now / period) * period
  return due(at) <= now and at or at - period
end

-- The first tick after one.
local function following(at)
  for i = 1, #(listed or '') do
    if listed[i] > at then return listed[i] end
  end
  return (math.floor(at / period) + 1) * period
end

local MADE_UP = 1000 -- ticks at most, when more were missed

-- Ends the script unless the client has listed all ticks that count: it learns the clock, and the last tick that is over, by
-- that. all: it must have listed all after that one, or so many that the first of them are left out.
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

-- Ms for which no tick begins. That is never longer than it was at its beginning: when the server's clock was
-- set back it begins anew.
local function held_off()
  local most = math.min(holds, LONGEST)
  if held > now + most then
    held = now + most
    redis.call('HSET', RUN, 'held', decimal(held))
  end
  return math.max(held - now, 0)
end

-- Ms until a tick is due that is not over, and may begin; 0: one is.
local function rest() return math.max(held_off(), due(following(last)) - now, 0) end

-- A job begins with the tick after its first look. A record that is far ahead was made while the clock was
-- wrong: the job goes on from the clock.
local function far(at) return at > now + period + AHEAD end
local fresh = not last or far(last)
if fresh then last = latest() end

-- A tick is over. One that began while the clock was wrong leaves no trace: else its process would sleep
-- until the clock has come there.
local function pass(at)
  if not far(at) then last = math.max(last, at) end
end

-- Records which ticks are over, and when the next one is due.
local function keep()
  redis.call('HSET', RUN, 'last', decimal(last), 'next', decimal(due(following(math.max(last, tick or 0)))))
  redis.call('PEXPIRE', RUN, decimal(KEPT + 2 * period))
end
