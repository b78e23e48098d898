-- keptback: whether a lock that is free is Redisson's turn, in an acquire: see shared/turns.lua. It comes
-- first, and makes no functions. An ARGV[4] of again+<n> says that the caller has heard n releases of
-- Redisson's since ours was the last one: then it has had its turn.
-- keys TURNS HOLDOFF
-- include shared/kept.lua

local kept_back -- ms; nil: it is not, or somebody owns the lock
local heard = ARGV[4] and #ARGV[4] > 5 and string.match(ARGV[4], '^again[ %d]*%+([1-9]%d*)$')
-- While a slot moves, and no companion shows that, Redis refuses to look for what is not here.
local marks = not moving and redis.pcall('EXISTS', HOLDOFF, TURNS)
if not moving and (heard or type(marks) == 'number' and marks > 0) then
  if redis.call('EXISTS', NAME) == 1 then
    local said = redis.pcall('GET', TURNS)
    local theirs = said == 'o' or said == 'p' or said == 'q'
    -- Their ids have hyphens, and ours have none.
    if theirs and string.find(table.concat(redis.call('HRANDFIELD', NAME, '3'), ' '), '-', 1, true) then
      redis.pcall('SET', TURNS, '1', 'PX', '1000') -- they took it
    end
  elseif heard then
    redis.pcall('DEL', HOLDOFF)
    redis.pcall('SET', TURNS, math.min(tonumber(heard), 256), 'PX', '1000')
  else
    -- inline shared/theirturn.lua
    kept_back = their_turn
  end
end
