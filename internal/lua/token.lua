-- token: included by the scripts that hand out fencing tokens and sequence numbers.
-- Uses KEYS[3] (token string) and ARGV[4] (the highest token the caller's client has seen).

local function micros()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- The greatest of the server's clock in microseconds, the last number plus one, and the highest seen plus one. So it
-- grows when the key has expired, and after a restart or a failover that lost it, while one call is the usual cost.
local function next_token(now)
  local text = string.format('%.0f', now)
  local last = redis.call('SET', KEYS[3], text, 'PX', 86400000, 'GET')
  local floor = tonumber(ARGV[4])
  if last then
    local number = tonumber(last)
    if not number or number >= 9007199254740991 then -- doubles end here, and so do we: it is not a token of ours
      redis.call('SET', KEYS[3], last, 'KEEPTTL')
      error('WRONGTYPE ' .. KEYS[3] .. ' holds no fencing token')
    end
    if number > floor then floor = number end
  end
  if floor >= now then
    now = floor + 1
    text = string.format('%.0f', now)
    redis.call('SET', KEYS[3], text, 'PX', 86400000)
  end
  return now, text
end
