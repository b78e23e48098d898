-- roll: call the roll of a client: which of its waiters are in the queue. It reads one part of the queue, and
-- the caller goes on with the next part. It changes nothing.
--
-- Between two parts others leave the queue, so that no index stays true. But what stands behind an entry
-- stays behind it. So each part begins behind the last entry of the part before, and a caller that has come
-- to the end has seen each entry that was in the queue all the time.
--
-- Keys  as in lock/acquire.lua or permit/trade.lua
-- ARGV  1 unused
--       2 client id
--       3 entry       the part begins behind the first copy of it; empty: at the head
--       4 part        how many entries to read
-- Reply {now, last, length, end, entry, …}
--             now     the server's clock in microseconds
--             last    the last number that was handed out or reserved; 0: not known
--             length  of the queue
--             end     the last entry that was read; empty: the queue ends here
--             entry   those of the client, in their order
--       {0}   that entry is not in the queue: begin again
-- keys QUEUE TOKEN

if moving then moving.need(QUEUE) end
local from = 0
if ARGV[3] ~= '' then
  local at = redis.call('LPOS', QUEUE, ARGV[3])
  if not at then return {0} end
  from = at + 1
end
local part = tonumber(ARGV[4])
local now
-- inline shared/now.lua
local last = redis.pcall('GET', TOKEN)
last = type(last) == 'string' and #last == 16 and string.find(last, '^%d+$') and tonumber(last) or 0
local entries = redis.call('LRANGE', QUEUE, from, from + part - 1)
local reply = {tonumber(now), last, redis.call('LLEN', QUEUE), #entries == part and entries[part] or ''}
local own = '1:' .. ARGV[2] .. ':'
local n, size = #own, 4
for i = 1, #entries do
  local entry = entries[i]
  if string.sub(entry, 1, n) == own then
    size = size + 1
    reply[size] = entry
  end
end
return reply
