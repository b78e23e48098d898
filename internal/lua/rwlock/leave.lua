-- leave: leaves a read-write lock to Redisson, where it is its turn: see shared/turns.lua. It is part of
-- rwlock/state.lua.

-- Who held the lock when the script began; nil: nobody. From then on a script may end that.
local began = mode

-- ms for which no reader of ours joins others while Redisson waits, and for which they may after that. Its
-- process may be stopped, and a reader may read for long.
local BARRED, LET_IN = 5000, 500

-- Whether no reader of ours may join those who read: Redisson waits. That is a writer, as a reader of
-- Redisson's would join them. TURNS keeps since when that is so, in ms, with r before it.
local function is_barred()
  if not redisson_waits() or our_turns() == math.huge then return false end
  local now = math.floor(clock() / 1000)
  local since = type(said) == 'string' and string.match(said, '^r(%d+)$')
  if not since then
    said = 'r' .. decimal(now)
    redis.pcall('SET', TURNS, said, 'PX', '60000')
  end
  return (now - (since or now)) % (BARRED + LET_IN) < BARRED
end

-- Whether nobody of ours may have the lock who does not have it. That is so when it is free, and it is
-- Redisson's turn, and when others read and Redisson waits. When a script ends what was held, the next are
-- those of the queue.
local function is_theirs()
  if not began then return kept_back ~= nil end
  return mode == 'read' and began == 'read' and is_barred()
end

-- Says that the lock was released. A reader's release wakes one who waits in a process of Redisson, and a
-- writer's wakes all. That reaches only those who sleep already: one may have listened and asked in vain, and
-- be about to sleep. The other message, which is kept for the next who sleeps, wakes that one too.
local function announce_release()
  if began == 'write' then announce('01') end
  announce('00')
end

-- As in lock/leave.lua, for those who call it after what was held is over.
local function leave_free()
  if not began then return kept_back ~= nil end
  if not is_redissons() then
    began = nil
    return false
  end
  return true
end
