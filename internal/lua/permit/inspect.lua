-- inspect: how many permits a semaphore has, who holds them, and who waits. Reads only. A permit whose lease
-- is over counts as free.
--
-- Keys  as in permit/trade.lua
-- ARGV  1 how many holders, and how many entries of the queue, to list
-- Reply {initialised (1, 0), free, held, length of the queue,
--        {holder, ms until its lease ends (-1: never), ...}, {entry, ...}}
--       holder: as in permit/holder.lua, or the hex digits of a permit that is not ours
--
-- A store stands in front of this file.
-- include permit/transaction.lua

local reply = {free and 1 or 0, free or 0, 0, queued() and redis.call('LLEN', QUEUE) or 0, {}, {}}
local most = tonumber(ARGV[1])
if TIMEOUTS and not (moving and (moving.lacks(TIMEOUTS) or moving.lacks(HOLDERS))) then
  local over = redis.call('ZCOUNT', TIMEOUTS, '-inf', decimal(math.floor(now / 1000)))
  reply[3] = redis.call('ZCARD', TIMEOUTS) - over
  if free then reply[2] = free + over end
  local seen = {}
  local list = most > 0 and redis.call('ZRANGE', TIMEOUTS, over, over + most - 1, 'WITHSCORES') or {}
  for i = 1, #list, 2 do
    local permit, ends = list[i], tonumber(list[i + 1]) or math.huge
    local prefix = string.sub(permit, 1, 14)
    if not seen[prefix] then
      local held = redis.call('HGET', HOLDERS, prefix)
      if held then seen[prefix] = true end
      local hex = string.gsub(permit, '.', function(c) return string.format('%02x', string.byte(c)) end)
      table.insert(reply[5], held or hex)
      table.insert(reply[5], ends >= NEVER and -1 or ends - math.floor(now / 1000))
    end
  end
end
if most > 0 and queued() then reply[6] = redis.call('LRANGE', QUEUE, 0, most - 1) end
return reply
