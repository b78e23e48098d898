-- token: hands out fencing tokens and sequence numbers. Uses TOKEN (the token string) and ARGV[2] (the
-- highest token of the name that the caller's client has seen).
-- keys TOKEN

-- Reserved tokens are at most so many microseconds ahead of the server's clock. A restart that loses the key
-- takes longer.
local AHEAD = 5000

-- A name can be further ahead than reserved tokens ever bring it: the clock was set back, or another server
-- with another clock took over. For such a name so many tokens are reserved at once, unless the caller says
-- how many. Reserved tokens that are not used are lost. That takes the name no further ahead as long as few
-- are lost.
local LEAN = 100

-- ms. Constants are text in the calls of every hand-off: Redis would format a number each time.
local DAY = '86400000'

local function micros()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- The number in a token field, how many tokens are reserved behind it, and the longest lease in ms. For any
-- other field: nil, 0 and nil.
local function parse_token(field)
  local number, reserved, longest = string.match(field or '', '^t(%d+)%+?(%d*)/?(%d*)$')
  if not number or #number > 16 or #reserved > 4 or #longest > 10 then return nil, 0 end
  return tonumber(number), tonumber(reserved) or 0, tonumber(longest)
end

local function decimal(number) return string.format('%.0f', number) end

-- Returns the next number, the same as text, and how many numbers are reserved behind it.
--
-- The number is the greatest of three: the server's clock in microseconds, the last number plus one, and the
-- highest number seen plus one. So numbers grow after the key has expired, and after a restart or a failover
-- that lost it. The usual cost is one call.
--
--   block  how many further numbers to reserve; fewer are, when the clock is not that near
--   lean   how many to reserve for a name that is far ahead of the clock
local function next_token(now, block, lean)
  local number, reserved = now, math.min(block or 0, AHEAD)
  local text = decimal(now)
  local last = redis.call('SET', TOKEN, reserved > 0 and decimal(now + reserved) or text, 'PX', DAY, 'GET')
  local floor = tonumber(ARGV[2])
  if last then
    local before = tonumber(last)
    if not (before and before > 0 and before < 9007199254740991) then -- above this, doubles skip integers
      redis.call('SET', TOKEN, last, 'KEEPTTL')
      error('WRONGTYPE ' .. TOKEN .. ' holds no fencing token')
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
    redis.call('SET', TOKEN, decimal(number + reserved), 'PX', DAY)
  end
  return number, text, reserved
end
