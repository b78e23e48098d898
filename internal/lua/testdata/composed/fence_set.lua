--!df flags=allow-undeclared-keys
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
if tokens[1] == ARGV[1] and numbers[1] >= ARGV[2] then return 0 end
redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. ARGV[2], 'PX', '86400000')
redis.call('SET', KEYS[1], ARGV[3])
return 1
