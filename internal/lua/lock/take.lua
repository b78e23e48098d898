-- take: the first half of an acquire: takes the lock when nobody owns it and nobody waits. Keys, ARGV and
-- replies: as in lock/acquire.lua. It makes no functions, as each costs as much as a command.
-- keys QUEUE TOKEN

-- redisson if not kept_back then
local call = redis.call -- to look it up costs two searches of tables
-- That both are missing says that the slot is at rest: see shared/moves.lua.
if not moving and (SLOTS and redis.pcall or call)('EXISTS', NAME, QUEUE) == 0 and (ARGV[5] or '0') == '0' then
  -- inline shared/fresh.lua
  call('HSET', NAME, ARGV[1], 't' .. token .. '/' .. ARGV[3])
  call('PEXPIRE', NAME, ARGV[3])
  return token
end
-- redisson end
-- moves
