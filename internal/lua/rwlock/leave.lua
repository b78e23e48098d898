-- leave: leaves a read-write lock to Redisson, where it is its turn: see shared/turns.lua. It is part of
-- rwlock/state.lua.

-- Who held the lock when the script began; nil: nobody. From then on a script may end that.
local began = mode

-- Whether nobody of ours may have the lock who does not have it. That is so when it is free, and it is
-- Redisson's turn. It is so too when others read, and Redisson waits: that is a writer, as a reader of
-- Redisson's would join them. When a script ends what was held, the next are those of the queue.
local function is_theirs()
  if not began then return kept_back ~= nil end
  return mode == 'read' and began == 'read' and redisson_waits() and our_turns() < math.huge
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
