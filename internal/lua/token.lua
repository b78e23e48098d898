-- token: included by the scripts that hand out fencing tokens and sequence numbers.
-- Uses KEYS[3] (token string) and ARGV[4] (the highest token of the name that the caller's client has seen).

-- How far reserved tokens may be ahead of the server's clock, in microseconds. A restart that loses the key takes longer.
local AHEAD = 5000

-- A name can be further ahead than tokens ever bring it: the clock was set back, or is that of a server which took over. There
-- so many are reserved at once, unless the caller says how many; what is not used is lost, and takes it no further ahead as long
-- as that is not much.
local LEAN = 100

local DAY = '86400000' -- ms. Constants are text in the calls of every hand-off: numbers would be formatted each time

local function micros()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- The number of a token field, how many are reserved behind it, and the longest lease in ms; nil, 0 and nil
-- for another field.
local function parse_token(field)
  local number, reserved, longest = string.match(field or '', '^t(%d+)%+?(%d*)/?(%d*)$')
  if not number or #number > 16 or #reserved > 4 or #longest > 10 then return nil, 0 end
  return tonumber(number), tonumber(reserved) or 0, tonumber(longest)
end

local function decimal(number) return string.format('%.0f', number) end

-- The greatest of the server's clock in microseconds, the last number plus one, and the highest seen plus one. So it
-- grows when the key has expired, and after a restart or a failover that lost it, while one call is the usual cost.
-- With a block, that many further numbers are reserved, or as many as stay near the clock: the third result. lean: how many where
-- none are near it.
local function next_token(now, block, lean)
  local number, reserved = now, math.min(block or 0, AHEAD)
  local text = decimal(now)
  local last = redis.call('SET', KEYS[3], reserved > 0 and decimal(now + reserved) or text, 'PX', DAY, 'GET')
  local floor = tonumber(ARGV[4])
  if last then
    local before = tonumber(last)
    if not (before and before > 0 and before < 9007199254740991) then -- doubles end there, and so do we
      redis.call('SET', KEYS[3], last, 'KEEPTTL')
      error('WRONGTYPE ' .. KEYS[3] .. ' holds no fencing token')
    end
    if before > floor then floor = before end
  end
  if floor >= now then
    number = floor + 1
    if floor > now + 2 * AHEAD then
      reserved = math.min(reserved, lean or LEAN)
    else
      reserved = math.max(0, math.min(reserved, now + AHEAD - number))
    end
    text = decimal(number)
    redis.call('SET', KEYS[3], decimal(number + reserved), 'PX', DAY)
  end
  return number, text, reserved
end
