local KEYS, ARGV = KEYS, ARGV
do
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
  for i = 1, n do
    local number = tokens[i] == ARGV[1] and numbers[i] ~= '' and ' ' .. numbers[i] or ''
    redis.call('SET', KEYS[n + i], ARGV[1] .. number, 'PX', '86400000')
  end
  local keys, args = {}, {}
  for i = 1, n do keys[i] = KEYS[i] end
  for i = 2, #ARGV do args[i - 1] = ARGV[i] end
  KEYS, ARGV = keys, args
end
