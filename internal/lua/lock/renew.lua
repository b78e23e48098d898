-- renew: extend the leases of many holds in one step. Safe to repeat.
--
-- KEYS  lock hashes
-- ARGV  for each key: owner id, lease in ms
-- Reply for each key: 1 renewed, 0 the id does not own it any more; then the server's clock in microseconds

local reply = {}
for i, key in ipairs(KEYS) do
  local owner, lease = ARGV[2 * i - 1], ARGV[2 * i]
  if redis.pcall('HEXISTS', key, owner) == 1 then -- foreign data under one name: that hold alone is lost
    redis.call('HDEL', key, 'short') -- the owner has reacted: from now on its whole lease counts
    redis.call('PEXPIRE', key, lease)
    reply[i] = 1
  else
    reply[i] = 0
  end
end
local t = redis.call('TIME')
reply[#reply + 1] = t[1] * 1000000 + t[2]
return reply
