-- check: refuses a token when a greater one was here, and notes it. Nothing is written before all is known.
--
-- KEYS  n keys of the user's, then the companion of each: latchkey_fence:{key}, in the key's slot. All are
--       declared, as those of the user's own scripts are: while their slot moves, Redis says TRYAGAIN before
--       the script has begun
-- ARGV  1 the token, in 16 digits: so they compare as text
-- A companion is a STRING: the greatest token that was here; and behind a space the greatest number of a
-- fence/set.lua with that token, in 16 digits, once there was one. It lives a day from its last use. Tokens
-- are near the server's clock: one far ahead of it, which would refuse all others, is none of ours.
--
-- It defines n, and tokens and numbers: what the companions had, by their place. It has no comments behind
-- its code, since fence/eval.lua becomes one line.

local n, tokens, numbers = #KEYS / 2, {}, {}
for i = 1, n do
  local last = redis.pcall('GET', KEYS[n + i])
  if last then
    local token, number = '', ''
    if type(last) == 'string' then
      token, number = string.match(last, '^(%d+) ?(%d*)$')
    elseif not string.find(last.err, 'WRONGTYPE', 1, true) then
      return last
    end
    if not token or #token ~= 16 or token > '9007199254740990' or #number ~= 0 and #number ~= 16
        or number > '9007199254740990' then
      return {err = 'LATCHKEY_FOREIGN ' .. KEYS[n + i] .. ' holds data that is not a fencing token'}
    end
    if token > ARGV[1] then
      local t = redis.call('TIME')
      if tonumber(token) > t[1] * 1000000 + 86400000000 then
        return {err = 'LATCHKEY_FOREIGN ' .. KEYS[n + i] .. ' has a token that is a day ahead of the clock'}
      end
      return {err = 'LATCHKEY_STALE token ' .. token}
    end
    tokens[i], numbers[i] = token, number
  end
end
