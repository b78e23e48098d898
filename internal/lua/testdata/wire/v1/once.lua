-- once: included by the scripts that take effect once, however often they arrive. What was done is recorded under the id of the
-- command, until its client says that it was answered and will not be sent again, or for ten minutes.
-- Uses KEYS[3] (prefix of the records), ARGV[1] (the id: <client id>:<number>) and ARGV[2] (numbers of this client's commands
-- that were answered).

local ONCE_KEPT = '600000' -- ms

local function recorded() return redis.call('GET', KEYS[3] .. ':' .. ARGV[1]) end

local function record(outcome) redis.call('SET', KEYS[3] .. ':' .. ARGV[1], outcome, 'PX', ONCE_KEPT) end

-- Deletes what is not needed any more. Called before the other writes of a script it keeps them from being refused for lack of
-- memory, because a script that has written is not refused anything; called after them it does not.
local function forget_answered()
  local client, gone = string.match(ARGV[1], '^[^:]+'), {KEYS[3]} -- which never exists
  for number in string.gmatch(ARGV[2], '%d+') do gone[#gone + 1] = KEYS[3] .. ':' .. client .. ':' .. number end
  redis.call('DEL', unpack(gone))
end
