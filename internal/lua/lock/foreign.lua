-- foreign: tells a lock from other data under its name. Uses NAME.

-- Whether a hash without a token of ours is a lock of Redisson. Such a lock has fields <id>:<thread> with a
-- count. One with a field mode is a read-write lock, and no lock. Scripts ask this of no lock of ours, so the
-- cost does not matter.
local function is_lock()
  if redis.call('HLEN', NAME) > 1000 then return false end
  local all = redis.call('HGETALL', NAME)
  for i = 1, #all, 2 do
    local field, value = all[i], all[i + 1]
    local counts = string.find(field, ':', 1, true) and string.find(value, '^%d+$')
    if not counts then return false end
  end
  return true
end

local function not_a_lock()
  return {err = 'WRONGTYPE ' .. NAME .. ' holds data that is not a lock'}
end
