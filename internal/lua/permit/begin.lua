-- begin: the beginning of a transaction on a semaphore. A store (permit/leased.lua or permit/plain.lua) and
-- permit/transaction.lua follow. Uses TOKEN and ARGV[2] of permit/trade.lua.
-- keys QUEUE TOKEN CHANNEL DONE TIMEOUTS HOLDERS
-- include shared/token.lua
-- redisson local next_fair
-- redisson -- include shared/turns.lua

local now = tonumber(clock())

-- Runs a command with any number of arguments, and returns the sum of its replies.
local function many(command, key, list)
  local sum = 0
  for i = 1, #list, 1000 do
    sum = sum + redis.call(command, key, unpack(list, i, math.min(i + 999, #list)))
  end
  return sum
end

-- The next token or sequence number. It does the same as next_token, which costs fewer commands when a script
-- needs one number only.
local last, known
local function next_number()
  if not last then
    local before = tonumber(redis.call('GET', TOKEN) or '0')
    if not (before and before >= 0 and before < 9007199254730000) then
      error('WRONGTYPE ' .. TOKEN .. ' holds no fencing token')
    end
    last, known = math.max(before, tonumber(ARGV[2])), before > 0
  end
  last = math.max(last + 1, now)
  return last
end

-- Reserves up to n numbers behind the last one, and returns how many: none that is far ahead of the clock.
local function reserve(n)
  local more = math.max(0, math.min(n, now + AHEAD - last))
  last = last + more
  return more
end
