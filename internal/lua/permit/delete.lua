-- delete: delete a semaphore. Messages tell its holders that their permits are gone, and its waiters to ask
-- again. Takes effect once.
--
-- Keys  as in permit/trade.lua
-- ARGV  1 id of this command, like an owner's
--       2 floor: as in permit/trade.lua
-- Reply 1 there was one, 0 there was none
--
-- A store stands in front of this file.
-- include permit/transaction.lua

local once = DONE .. ':' .. ARGV[1]
ready()
if moving then moving.need(once) end
local before = redis.call('GET', once)
if before and before ~= '0' and before ~= '1' then
  error('WRONGTYPE ' .. once .. ' does not say what was deleted')
end
if before then return tonumber(before) end -- a late copy does not delete what was made since
local existed = found and 1 or 0
redis.call('SET', once, existed, 'PX', '600000')
local line = open_queue()
local holders = HOLDERS and redis.call('HVALS', HOLDERS) or {}
local entries = queued() and redis.call('LRANGE', QUEUE, 0, -1) or {}
-- One by one: in a slot that is moving, not all keys may be here. A statement of the capacity that is on the
-- other side expires.
for _, key in ipairs({DONE .. ':stated', QUEUE, TIMEOUTS or QUEUE, HOLDERS or QUEUE, NAME}) do
  redis.pcall('DEL', key)
end
for _, holder in ipairs(holders) do -- plain permits have none
  local _, token, _, owner = parse_holder(holder)
  if owner then
    local client, number = string.match(owner, '^([^:]+):(%d+)$')
    line.tell(client, 'f', number .. ' ' .. token)
  end
end
for _, entry in ipairs(entries) do
  local client, number = string.match(entry, '^1:([^:]+):(%d+):')
  if client then line.ask(client, number) end
end
for _, m in ipairs(line.messages) do line.tell(m[1], m[2], m[3]) end
return existed
