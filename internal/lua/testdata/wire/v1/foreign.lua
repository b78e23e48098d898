-- foreign: included by the scripts that must not mistake somebody else's data for a lock. Uses KEYS[1].

-- Whether the hash is a lock: ours (a token field), or one of Redisson's, whose fields are <id>:<thread> with a count and,
-- for read-write locks, a mode. Called only for a hash without a token of ours, so its cost does not matter.
local function is_lock()
  if redis.call('HLEN', KEYS[1]) > 1000 then return false end
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local field, value = all[i], all[i + 1]
    local counts = string.find(field, ':', 1, true) and string.find(value, '^%d+$')
    local mode = field == 'mode' and (value == 'read' or value == 'write')
    if not counts and not mode then return false end
  end
  return true
end

local function not_a_lock()
  return {err = 'WRONGTYPE ' .. KEYS[1] .. ' holds data that is not a lock'}
end
