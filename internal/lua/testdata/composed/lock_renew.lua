--!df flags=allow-undeclared-keys
local reply = {}
for i, key in ipairs(KEYS) do
  local owner, lease = ARGV[2 * i - 1], ARGV[2 * i]
  local value = redis.pcall('HGET', key, owner)
  if type(value) == 'string' then -- foreign data under one name: that hold alone is lost
    redis.call('PEXPIRE', key, lease) -- first: Redis never refuses it for lack of memory, nor what follows
    local confirmed, granted = string.gsub(value, '!.*', '')
    if granted > 0 then redis.call('HSET', key, owner, confirmed) end -- from now on its whole lease counts
    reply[i] = 1
  else
    reply[i] = 0
  end
end
local t = redis.call('TIME')
reply[#reply + 1] = t[1] * 1000000 + t[2]
return reply
