--!df flags=allow-undeclared-keys
local function base(owner)
  local prefix
local colon = string.find(owner, ':', 1, true)
local number = string.sub(owner, colon + 1, #owner > colon + 9 and -10 or -1)
local fourth = number % 256
local high = (number - fourth) / 256
local third = high % 256
high = (high - third) / 256
local second = high % 256
prefix = (colon > 10 and string.sub(owner, colon - 10, colon - 1)
  or string.sub('..........' .. string.sub(owner, 1, colon - 1), -10))
  .. string.char((high - second) / 256 % 256, second, third, fourth)
  return prefix
end
local function append_permits(list, prefix, from, to, score)
  local size = #list
  for i = from, to - 1 do
    if score then
      size = size + 1
      list[size] = score
    end
    size = size + 1
    list[size] = prefix .. string.char(math.floor(i / 256), i % 256)
  end
end
local function parse_holder(text)
  local n, token, short, lease, owner = string.match(text or '', '^(%d+):(%d+):([01]):(%d+):([^:]+:%d+)$')
  if not n or #n > 4 or #token > 16 or #lease > 10
    or tonumber(n) == 0 or tonumber(n) > 1000 then return nil end
  return tonumber(n), token, short, owner, lease
end
local HOLDERS_KEPT = '172800000' -- two days, in ms: longer than any lease
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local alone = #KEYS == 1
if alone then KEYS[2] = table.remove(ARGV) end
local reply = {}
for i = 1, #ARGV / 2 do
  local timeouts, holders = KEYS[2 * i - 1], KEYS[2 * i]
  local prefix = base(ARGV[2 * i - 1])
  local held, ends = redis.pcall('HGET', holders, prefix), redis.pcall('ZSCORE', timeouts, prefix .. '\0\0')
  reply[i] = 0
  if alone and type(ends) == 'string' and type(held) ~= 'string'
    and type(redis.pcall('EXISTS', timeouts, holders)) ~= 'number' then
    error('TRYAGAIN the slot is moving, and ' .. holders .. ' may be on the other side')
  end
  local n, token, short, owner = parse_holder(type(held) == 'string' and held or nil)
  if n and type(ends) == 'string' and (tonumber(ends) or math.huge) > now then
    local permits = {}
    append_permits(permits, prefix, 0, n, string.format('%.0f', now + 1 + ARGV[2 * i]))
    redis.call('PEXPIRE', holders, HOLDERS_KEPT)
    redis.call('ZADD', timeouts, 'XX', unpack(permits))
    if short == '1' then -- the owner has reacted: from now on its whole lease counts
      redis.call('HSET', holders, prefix, n .. ':' .. token .. ':0:' .. ARGV[2 * i] .. ':' .. owner)
    end
    reply[i] = 1
  end
end
reply[#reply + 1] = t[1] * 1000000 + t[2]
return reply
