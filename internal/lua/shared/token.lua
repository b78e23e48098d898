-- token: hands out fencing tokens. Uses TOKEN (the token string) and ARGV[2] (the highest token of the name
-- that the caller's client has seen, in 16 digits).
-- keys TOKEN
-- include shared/behind.lua

-- Reserved tokens are at most so many microseconds ahead of the server's clock. A restart that loses the key
-- takes longer.
local AHEAD = 5000

-- ms. The last token is kept for a day from when its time to live was set anew, and an hour from the first
-- one. So it is forgotten 43 minutes after its last use at the earliest. The next one is greater all the
-- same, unless the server's clock has been set back by more than that. Constants are text in the calls of
-- every hand-off: Redis would format a number each time.
local DAY, HOUR = '86400000', '3600000'
-- redisson DAY, HOUR = '7776000000', '7776000000' -- ninety days: without the key Redisson's next would be 1

local function clock()
  local now
  -- inline shared/now.lua
  return now
end

-- Returns the next token as text, and how many are reserved behind it.
--
-- It is the greatest of three: the server's clock in microseconds, the last one plus one, and the highest one
-- seen plus one. So tokens grow after the key has expired, and after a restart or a failover that lost it.
-- The usual cost is one call: the key's time to live is set anew when the clock's seventh digit changes,
-- every thousand seconds.
--
--   now    what clock returned
--   block  how many further tokens to reserve; fewer are, when the clock is not that near
--   lean   how many to reserve for a name that is far ahead of the clock
local function next_token(now, block, lean)
  local floor = ARGV[2]
  if block and block > 0 then
    local reserved = math.min(block, AHEAD)
    local last = redis.call('SET', TOKEN, decimal(now + reserved), 'KEEPTTL', 'GET')
    return token_after(now, last, floor, reserved, lean)
  end
  local last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
  -- inline shared/newest.lua
  if newest then return now, 0 end
  return token_after(now, last, floor, 0, lean)
end
