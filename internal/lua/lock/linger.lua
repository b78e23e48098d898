-- linger: what an attempt does that finds a lock whose owner may linger. Uses ARGV[1] of lock/acquire.lua.

-- Tells the owner that the caller's id wants the lock, and reports whether an answer is to be expected. It is
-- not where others are next, nor inside of the owner's own client, which knows by itself.
local function ask_owner(owner)
  local client = string.match(owner, '^([^:]+):%d+$')
  if not client or client == string.match(ARGV[1], '^[^:]+') or others_wait() == 1 or not alive(client) then
    return false
  end
  tell_owner(owner, 't', ARGV[1])
  return true
end
