-- behind: what there is to a token that is not just the clock. Uses TOKEN.

local function decimal(number) return string.format('%.0f', number) end

-- Returns the next token as text, and how many are reserved behind it: see next_token in shared/token.lua.
-- The clock, and what is to be reserved behind it, is in the key already. last: what was there before.
local function token_after(now, last, floor, reserved, lean)
  local number = tonumber(now)
  floor = tonumber(floor) or 0
  if last then
    local before = tonumber(last)
    -- Above 2^53 doubles skip integers, and so many are reserved at most.
    if not (before and before > 0 and before < 9007199254730000) then
      redis.call('SET', TOKEN, last, 'KEEPTTL')
      error('WRONGTYPE ' .. TOKEN .. ' holds no fencing token')
    end
    if before > floor then floor = before end
  end
  if floor >= number then
    -- A name can be further ahead than reserved tokens ever bring it: the clock was set back, or another
    -- server with another clock took over. For such a name a hundred tokens are reserved at once, unless the
    -- caller says how many. Reserved tokens that are not used are lost. That takes the name no further ahead
    -- as long as few are lost.
    local ahead = 5000
    if floor > number + 2 * ahead then
      reserved = math.min(reserved, lean or 100)
    else
      reserved = math.max(0, math.min(reserved, number + ahead - floor - 1))
    end
    number = floor + 1
    redis.call('SET', TOKEN, decimal(number + reserved), 'KEEPTTL')
  end
  -- A day, or an hour for the first one: many names are made for one use. See HOUR in shared/token.lua.
  redis.call('PEXPIRE', TOKEN, (last or number > tonumber(now)) and '86400000' or '3600000')
  -- redisson redis.call('PEXPIRE', TOKEN, '7776000000') -- ninety: without it Redisson's next one would be 1
  return decimal(number), reserved
end
