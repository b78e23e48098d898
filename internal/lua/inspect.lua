-- inspect: who holds the lock and who waits for it. Reads only.
--
-- KEYS  1 lock, 2 queue, 3 token: as in acquire.lua
-- ARGV  1 how many entries of the queue are listed
-- Reply {owner ("" when free), token ("0" when none of ours), ms until its lease ends (-1: never), length of the queue,
--        entries...}
-- include foreign.lua

local owner, token, left = '', '0', 0
local held = redis.call('HGETALL', KEYS[1])
if #held > 0 then
  left = redis.call('PTTL', KEYS[1])
  for i = 1, #held, 2 do
    local field, value = held[i], held[i + 1]
    if field == 'token' then
      token = string.match(value, '^t(%d+)$') or '0'
    elseif field == 'short' then
      local t = redis.call('TIME')
      left = math.min(left, math.max(0, math.floor(string.sub(value, 2) - t[1] * 1000 - t[2] / 1000)))
    elseif field ~= 'mode' then
      owner = field
    end
  end
  if token == '0' and not is_lock() then return not_a_lock() end
end
local reply = {owner, token, left, redis.call('LLEN', KEYS[2])}
if tonumber(ARGV[1]) > 0 then
  for _, entry in ipairs(redis.call('LRANGE', KEYS[2], 0, ARGV[1] - 1)) do reply[#reply + 1] = entry end
end
return reply
