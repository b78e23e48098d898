-- queue: the list of waiters, and the inboxes of their clients. Uses QUEUE and ARGV[1] of lock/acquire.lua.
-- keys QUEUE
-- include shared/inbox.lua
-- include shared/pace.lua

-- The entries of a client that does not react: it was granted something by message, and did not renew it
-- once. The caller drops them, because each would cost as much time again. A client that lives after all
-- finds its entries gone when it asks, and queues again.
local function of_unresponsive(client)
  local found = {}
  if not client or client == string.match(ARGV[1], '^[^:]+')
    or moving and moving.lacks(QUEUE) then return found end
  local prefix = '1:' .. client .. ':'
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, -1)) do
    if string.sub(entry, 1, #prefix) == prefix then found[#found + 1] = entry end
  end
  return found
end
