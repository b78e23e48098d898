-- barred: when to ask again, in an acquire that Redisson's turn keeps from the lock: see rwlock/leave.lua. A
-- writer of Redisson that gives up does not say so.
if kept_back or reads and is_theirs() then
  local soon = kept_back or tonumber(KEPT)
  left = left and left >= 0 and math.min(left, soon) or soon
end
