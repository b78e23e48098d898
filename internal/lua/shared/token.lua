-- token: hands out fencing tokens. Uses TOKEN (the token string) and ARGV[2] (the highest token of the name
-- that the caller's client has seen, in 16 digits or more).
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

-- The server's clock in microseconds, as text: 16 digits, which compare as the numbers do. To format a number
-- costs as much as to ask for the time.
local function clock()
  local t = redis.call('TIME')
  local micros = t[2]
  if #micros < 6 then micros = string.sub('00000' .. micros, -6) end
  return t[1] .. micros
end

local function decimal(number) return string.format('%.0f', number) end

-- What next_token does when there is more to it. The clock, and what is reserved behind it, is in the key
-- already. last: what was there before.
local function token_after(now, last, reserved, lean)
  local floor, number = tonumber(ARGV[2]), tonumber(now)
  if last then
    local before = tonumber(last)
    if not (before and before > 0 and before < 9007199254740991) then -- above this, doubles skip integers
      redis.call('SET', TOKEN, last, 'KEEPTTL')
      error('WRONGTYPE ' .. TOKEN .. ' holds no fencing token')
    end
    if before > floor then floor = before end
  end
  if floor >= number then
    if floor > number + 2 * AHEAD then
      reserved = math.min(reserved, lean or LEAN)
    else
      reserved = math.max(0, math.min(reserved, number + AHEAD - floor - 1))
    end
    number = floor + 1
    redis.call('SET', TOKEN, decimal(number + reserved), 'KEEPTTL')
  end
  redis.call('PEXPIRE', TOKEN, DAY)
  return decimal(number), reserved
end

-- Returns the next token as text, and how many are reserved behind it.
--
-- It is the greatest of three: the server's clock in microseconds, the last one plus one, and the highest one
-- seen plus one. So tokens grow after the key has expired, and after a restart or a failover that lost it.
-- The usual cost is one call: the key's time to live is set anew when the clock's first seven digits change,
-- every thousand seconds.
--
--   now    what clock returned
--   block  how many further tokens to reserve; fewer are, when the clock is not that near
--   lean   how many to reserve for a name that is far ahead of the clock
local function next_token(now, block, lean)
  local reserved, last = 0, nil
  if block and block > 0 then
    reserved = math.min(block, AHEAD)
    last = redis.call('SET', TOKEN, decimal(now + reserved), 'KEEPTTL', 'GET')
  else
    last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
  end
  if last and last < now and ARGV[2] < now and #last == 16
    and string.sub(last, 1, 7) == string.sub(now, 1, 7) and tonumber(last) then
    return now, reserved
  end
  return token_after(now, last, reserved, lean)
end
