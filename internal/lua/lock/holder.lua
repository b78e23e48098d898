-- holder: who owns the lock, and until when. Uses NAME.
-- include shared/value.lua
-- include shared/inbox.lua

-- Returns the fields of the lock and their values, in one list. A lock has one; more than two are not read.
local function fields() return redis.call('HRANDFIELD', NAME, '2', 'WITHVALUES') end

-- Whether that is a lock: one of ours, or of Redisson, whose field is <id>:<thread> with a count. One with a
-- field mode is a read-write lock, and no lock.
local function is_lock(held)
  return #held == 2 and string.find(held[1], ':', 1, true)
    and (parse_token(held[2]) or string.find(held[2], '^%d+$')) and true
end

local function not_a_lock()
  return {err = 'WRONGTYPE ' .. NAME .. ' holds data that is not a lock'}
end

-- ms until the lease ends; negative: never; nil: there is no holder. The clock of some servers moves while a
-- script runs. There, nil may come although the script has seen a holder: its lease ends now.
--
--   now      the server's clock in microseconds
--   longest  no renewal of the holder gives it more than this; nil: not known. A lease with more left was
--            given before the server's clock was set back, and perhaps nobody is left to renew it. So it is
--            cut. That takes no time from a holder who lives. A lease without an end gets this one.
--   granted  when a message granted it that was not confirmed yet
local function lease_left(now, longest, granted)
  local left = redis.call('PTTL', NAME)
  if left == -2 then return nil end
  local short = math.min(longest or SHORT, SHORT)
  if granted and longest then longest = math.max(longest, short + OUTLIVES) end
  if longest and (left > longest or left == -1) then
    redis.call('PEXPIRE', NAME, longest)
    left = longest
  end
  if not granted then return left end
  return math.min(left, math.max(0, math.ceil((granted - now) / 1000) + short))
end
