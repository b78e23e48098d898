-- queue: the list of waiters, and the inboxes of their clients. Uses QUEUE and ARGV[1] of lock/acquire.lua.
-- keys QUEUE
-- include shared/inbox.lua
-- include shared/pace.lua

-- The entries of clients that do not react: each was granted something by message, and did not renew it
-- once. The caller drops them, because each would cost as much time again. A client that lives after all
-- finds its entries gone when it asks, and queues again. clients: a set, of which the caller's own is left
-- out.
local function of_unresponsive(clients)
  local found, own = {}, string.match(ARGV[1], '^[^:]+')
  if moving and moving.lacks(QUEUE) then return found end
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, -1)) do
    local client = string.match(entry, '^1:([^:]+):')
    if client and client ~= own and clients[client] then found[#found + 1] = entry end
  end
  return found
end
