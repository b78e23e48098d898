-- once: included by the scripts that take effect once, however often they arrive. What was done is recorded under the id of the
-- command, until its client says that it was answered and will not be sent again, or for ten minutes.
-- Uses KEYS[3] (prefix of the records), ARGV[1] (the id: <client id>:<number>) and ARGV[2] (numbers of this client's commands
-- that were answered).

local ONCE_KEPT = '600000' -- ms

local function recorded() return redis.call('GET', KEYS[3] .. ':' .. ARGV[1]) end

local function record(outcome) redis.call('SET', KEYS[3] .. ':' .. ARGV[1], outcome, 'PX', ONCE_KEPT) end

-- After the other writes: deleting is never refused, and so would not keep those from being refused half-way.
local function forget_answered()
  if ARGV[2] == '' then return end
  local client, gone = string.match(ARGV[1], '^[^:]+'), {}
  for number in string.gmatch(ARGV[2], '%d+') do gone[#gone + 1] = KEYS[3] .. ':' .. client .. ':' .. number end
  redis.call('DEL', unpack(gone))
end
