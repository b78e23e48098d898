-- lease: when the holder's lease ends. Uses NAME.

-- ms until the lease ends; negative: never; nil: there is no holder. The clock of some servers moves while a
-- script runs. There, nil may come although the script has seen a holder: its lease ends now.
--
-- longest: no renewal of the holder gives it more than this; nil: not known. A lease with more left was given
-- before the server's clock was set back, and perhaps nobody is left to renew it. So it is cut. That takes no
-- time from a holder who lives.
local function lease_left(now, longest)
  local left = redis.call('PTTL', NAME)
  if left == -2 then return nil end
  if longest and left > longest then
    redis.call('PEXPIRE', NAME, longest)
    left = longest
  end
  local short = redis.call('HGET', NAME, 'short')
  if not short then return left end
  return math.min(left, math.max(0, math.ceil((tonumber(string.sub(short, 2)) or 0) - now / 1000)))
end
