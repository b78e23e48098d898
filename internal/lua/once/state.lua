-- state: what is known of the runs of a name, which every script of package once reads first. The lock of the
-- name decides who runs. This record decides whose outcome counts: that of the run which has begun last.
--
-- RUN  HASH  token    fencing token of the run that has begun last
--            attempt  its number: how many runs in a row began without an outcome, with this one
--            phase    r: it runs, or its process has died; f: it has failed; o: it has the outcome
--            over     number of the last outcome. It is the server's clock in microseconds when the function
--                     returned, or the edition, and grows
--            kind     v: the outcome is a value, e: it is the text of an error. Absent unless phase is o
--            value    the outcome
--            until    ms since the epoch: the next run does not begin before. Absent unless phase is f
--            pause    ms from then: how long that was from the failure
--            won      token of the run that has had the last outcome; absent before there is one
--            edition  that the attempts are of; absent where there are none
--            first    token of the run with which the record begins: of those before it nothing is known
--            asker    owner id whose acquire has begun the run (once/acquire.lua); absent: a begin has, or it is over
--            gone     owner id whose acquire begins no run any more: the last one that said so
--      A waiter that was told `over`, or the clock, when it came takes any outcome with a greater number: that
--      run ended after the wait began.
-- keys RUN
-- include shared/pause.lua

if moving then moving.need(RUN) end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) -- ms
local f = redis.call('HMGET', RUN, 'token', 'attempt', 'phase', 'over', 'kind', 'value', 'until', 'pause', 'won',
  'first', 'edition', 'asker', 'gone')

-- Reads a whole number of the record: 0 when it is absent. None is greater than a token can be.
local function number_of(text)
  if not text then return 0 end
  if #text > 16 or not string.find(text, '^%d+$') or tonumber(text) > 9007199254740990 then
    error('WRONGTYPE ' .. RUN .. ' holds data that is not of runs')
  end
  return tonumber(text)
end

local token, attempt, phase, over = number_of(f[1]), number_of(f[2]), f[3] or '', number_of(f[4])
local ends, pause, won, first = number_of(f[7]), number_of(f[8]), number_of(f[9]), number_of(f[10])
local asker, gone = f[12], f[13]
if phase ~= '' and not string.find(phase, '^[rfo]$')
  or phase == 'o' and not ((f[5] == 'v' or f[5] == 'e') and f[6] and #f[6] <= 65536) -- as once.MaxResult says
  or phase == 'r' and attempt == 0 or over == 9007199254740990 -- after which none comes
  or not f[4] and redis.call('EXISTS', RUN) == 1 then
  error('WRONGTYPE ' .. RUN .. ' holds data that is not of runs')
end

local function decimal(number) return string.format('%.0f', number) end

local micros = time[1] * 1000000 + time[2]

-- The number of an outcome at a moment. It is greater than the number of the last outcome.
local function next_over(moment) return math.max(over + 1, moment) end

-- Of an edition that was not tried yet no run has failed.
local function is_of(edition)
  if edition > 0 and edition ~= number_of(f[11]) and phase ~= 'o' then attempt, phase = 0, '' end
end

-- Ms until the next run may begin. A pause is never longer than it was at its beginning: when the server's
-- clock was set back it begins anew.
local function paused()
  if phase ~= 'f' or ends <= now then return 0 end
  if ends > now + pause then
    ends = now + pause
    redis.call('HSET', RUN, 'until', decimal(ends))
  end
  return ends - now
end
