-- crowd: what is known of the leases of many readers without a look at each. Uses what rwlock/state.lua
-- defines.
--
-- Each lease of a reader is a key. To look at all of them for each question would cost as many looks as there
-- are readers, times as many questions as there are waiters. So a look at more than CROWD readers leaves in
-- STATE when the first of their leases ends. As long as that is to come, nobody who waits behind others looks
-- at them again.
--
-- As long as it is right, a look would find nothing: no lease ends sooner. It may be wrong: readers of
-- Redisson came that know no queue, a lease was cut or is the last of a longest hold, or a former version has
-- served the queue. That breaks nothing, because it grants nothing: who believes it takes readers for readers
-- still. And it delays little, because the first who waits always looks, as does whoever asks while nobody
-- waits. After that time anybody looks, should the first not react. It goes when the queue is served, which
-- may make readers of those with shorter leases.

local CROWD = 64

-- ms until the first lease of many readers ends, if it is known and entry is not to look. entry: of who asks;
-- nil: it is to look.
local function known_end(entry, longest)
  if not entry or not longest or redis.call('HLEN', NAME) <= CROWD then return nil end
  local hidden = moving and moving.lacks(QUEUE)
  local head = not hidden and redis.call('LINDEX', QUEUE, 0)
  if not hidden and (not head or head == entry) then return nil end
  if moving then return SHORT end -- what is on the other side cannot be looked at
  local ends = redis.call('HGET', STATE, 'ends')
  if not ends or #ends ~= 13 then return nil end
  local left = (tonumber(ends) or 0) - math.floor(clock() / 1000)
  -- More than the longest lease: the server's clock was set back.
  return left > 0 and left <= longest and left or nil
end

-- Leaves what was seen. left: ms until the first lease of so many readers ends. Redis may refuse it for lack
-- of memory: then all look.
local function note_end(readers, left)
  if readers <= CROWD or left <= 0 or moving then return end
  redis.pcall('HSET', STATE, 'ends', decimal(math.floor(clock() / 1000) + left))
end
