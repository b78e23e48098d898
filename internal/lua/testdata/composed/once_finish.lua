--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local RUN = 'latchkey_once:{' .. NAME .. '}'
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
if moving then moving.need(RUN) end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) -- ms
local f = redis.call('HMGET', RUN, 'token', 'attempt', 'phase', 'over', 'kind', 'value', 'until', 'pause', 'won',
  'first', 'edition', 'asker', 'gone')
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
local function next_over(moment) return math.max(over + 1, moment) end
local function is_of(edition)
  if edition > 0 and edition ~= number_of(f[11]) and phase ~= 'o' then attempt, phase = 0, '' end
end
local function paused()
  if phase ~= 'f' or ends <= now then return 0 end
  if ends > now + pause then
    ends = now + pause
    redis.call('HSET', RUN, 'until', decimal(ends))
  end
  return ends - now
end
local mine = tonumber(ARGV[1])
if token ~= mine then
  if won == mine then return {'o', decimal(over)} end
  return {first > 0 and mine >= first and won < mine and 's' or 'u'}
end
if phase == 'r' then
  phase = ARGV[2]
  redis.call('PEXPIRE', RUN, ARGV[3]) -- first: Redis never refuses it for lack of memory, nor what follows
  if asker then redis.call('HDEL', RUN, 'asker') end
  if phase == 'o' then
    local at, edition = tonumber(ARGV[6]), tonumber(ARGV[7])
    if edition > 0 then
      over = edition
    else
      over = next_over(at > 0 and math.min(at, micros) or micros)
    end
    redis.call('HSET', RUN, 'phase', 'o', 'over', decimal(over), 'kind', ARGV[4], 'value', ARGV[5], 'won', ARGV[1])
  else
    redis.call('HSET', RUN, 'phase', 'f', 'until', decimal(now + ARGV[4]), 'pause', ARGV[4])
  end
end
if phase == 'o' then return {'o', decimal(over)} end
return {phase == 'f' and 'f' or 's'}
-- the same for names of another kind
--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local RUN = 'latchkey_share:{' .. NAME .. '}'
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
if moving then moving.need(RUN) end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) -- ms
local f = redis.call('HMGET', RUN, 'token', 'attempt', 'phase', 'over', 'kind', 'value', 'until', 'pause', 'won',
  'first', 'edition', 'asker', 'gone')
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
local function next_over(moment) return math.max(over + 1, moment) end
local function is_of(edition)
  if edition > 0 and edition ~= number_of(f[11]) and phase ~= 'o' then attempt, phase = 0, '' end
end
local function paused()
  if phase ~= 'f' or ends <= now then return 0 end
  if ends > now + pause then
    ends = now + pause
    redis.call('HSET', RUN, 'until', decimal(ends))
  end
  return ends - now
end
local mine = tonumber(ARGV[1])
if token ~= mine then
  if won == mine then return {'o', decimal(over)} end
  return {first > 0 and mine >= first and won < mine and 's' or 'u'}
end
if phase == 'r' then
  phase = ARGV[2]
  redis.call('PEXPIRE', RUN, ARGV[3]) -- first: Redis never refuses it for lack of memory, nor what follows
  if asker then redis.call('HDEL', RUN, 'asker') end
  if phase == 'o' then
    local at, edition = tonumber(ARGV[6]), tonumber(ARGV[7])
    if edition > 0 then
      over = edition
    else
      over = next_over(at > 0 and math.min(at, micros) or micros)
    end
    redis.call('HSET', RUN, 'phase', 'o', 'over', decimal(over), 'kind', ARGV[4], 'value', ARGV[5], 'won', ARGV[1])
  else
    redis.call('HSET', RUN, 'phase', 'f', 'until', decimal(now + ARGV[4]), 'pause', ARGV[4])
  end
end
if phase == 'o' then return {'o', decimal(over)} end
return {phase == 'f' and 'f' or 's'}
