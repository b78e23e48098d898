-- newest: has the clock be the next token, as it nearly always can: see next_token in shared/token.lua. It
-- puts into a local newest whether that was right, and into last what was there before, or an error. It is
-- made to be inlined behind shared/now.lua. Uses TOKEN and ARGV[2].
local last = redis.pcall('SET', TOKEN, now, 'KEEPTTL', 'GET')
local newest = type(last) == 'string' and last < now and ARGV[2] < now and #last == 16 and tonumber(last)
  and string.byte(last, 7) == string.byte(now, 7)
