-- destroy: delete a semaphore. Its holders are told that their permits are gone, and those who wait that they must ask.
--
-- KEYS  as in take.lua
-- ARGV  1 unused, 2 inbox prefix, 3 publish verb, 4 floor: as in take.lua
-- Reply 1 there was one, 0 there was none
-- include token.lua
-- include permits.lua

local existed = available() and 1 or 0
local holders = KEYS[7] and redis.call('HVALS', KEYS[7]) or {}
local entries = redis.call('LRANGE', KEYS[2], 0, -1)
redis.call('DEL', KEYS[1], KEYS[2], KEYS[5] .. ':stated')
if KEYS[6] then redis.call('DEL', KEYS[6], KEYS[7]) end
for _, holder in ipairs(holders) do
  local token, client, number = string.match(holder, '^%d+:(%d+):[01]:([^:]+):(%d+)$')
  if token then tell(client, 'f', number .. ' ' .. token) end
end
local told = {}
for _, entry in ipairs(entries) do -- one message makes all waiters of a client ask
  local client, number = string.match(entry, '^1:([^:]+):(%d+):')
  if client and not told[client] then
    told[client] = true
    tell(client, 'a', number)
  end
end
return existed
