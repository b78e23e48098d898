-- linger: what an attempt does that finds a lock whose owner may linger. Uses ARGV[1..2] of lock/acquire.lua.
-- include lock/grant.lua

-- Tells the owner that the caller's id wants the lock, and reports whether an answer is to be expected. It is
-- not where others are next, nor inside of the owner's own client, which knows by itself.
local function ask_owner()
  local asker = string.match(ARGV[1], '^[^:]+')
  for _, field in ipairs(redis.call('HKEYS', NAME)) do
    local client = string.match(field, '^([^:]+):%d+$')
    if client then
      if client == asker or others_wait() == 1 or not alive(client) then return false end
      tell_owner('t', {field}, ARGV[1])
      return true
    end
  end
  return false
end
