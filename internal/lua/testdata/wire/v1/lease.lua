-- lease: included by the scripts that say when the holder's lease ends. Uses KEYS[1].

-- ms until then, nil when there is no holder (a server whose clock moves while a script runs may say so after
-- all: then it ends now), negative when it never ends. longest: the lease that nobody's renewal exceeds, if
-- that is known. What is longer was given before the server's clock was set back, and nobody might be left to
-- renew it: it is cut, which takes no time from a holder who lives.
local function lease_left(now, longest)
  local left = redis.call('PTTL', KEYS[1])
  if left == -2 then return nil end
  if longest and left > longest then
    redis.call('PEXPIRE', KEYS[1], longest)
    left = longest
  end
  local short = redis.call('HGET', KEYS[1], 'short')
  if not short then return left end
  return math.min(left, math.max(0, math.ceil((tonumber(string.sub(short, 2)) or 0) - now / 1000)))
end
