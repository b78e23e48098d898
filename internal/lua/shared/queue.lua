-- queue: the list of waiters, and the inboxes of their clients. Uses QUEUE and ARGV[1] of lock/acquire.lua.
--
-- A client that was granted something by message, and did not renew it once, does not react. Its entries go,
-- because each would cost as much time again. Others may not react either: when a host is lost, Redis keeps
-- the connections of all its processes for minutes. So a message calls the others that wait, and a client
-- that reacts asks. At the next grant that is not renewed, the entries of those go as well that were called a
-- second ago or more, and have not asked since. So lost processes cost two short leases together, however
-- many they are. A client that lives after all finds its entries gone when it asks, and queues again.
--
-- CALLED HASH client id -> its first entry: the clients that were called and have not asked since. When that
--             entry is not queued any more it says nothing. Its time to live says when they were called
-- keys QUEUE
-- include shared/inbox.lua
-- include shared/pace.lua
-- inline keys CALLED

-- Whether the clients were called a moment ago, and still have time to answer.
local answering = false

-- The entries that go: of a set of clients that do not react, and of called clients that have not asked. The
-- caller's own client is left out.
local function of_unresponsive(clients)
  local found, called, own = {}, {}, string.match(ARGV[1], '^[^:]+')
  if moving and moving.lacks(QUEUE) then return found end
  local left = redis.pcall('PTTL', CALLED)
  answering = type(left) == 'number' and QUEUE_KEPT - left < 1000
  local list = answering and {} or redis.pcall('HGETALL', CALLED) -- foreign data says nothing
  for i = 1, #list, 2 do called[list[i]] = list[i + 1] end
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, -1)) do
    local client = string.match(entry, '^1:([^:]+):')
    if client and client ~= own then
      if called[client] == entry then clients[client] = true end -- its others stand behind this one
      if clients[client] then found[#found + 1] = entry end
    end
  end
  return found
end
