-- leave: leaves a permit to Redisson, where it is its turn: see shared/turns.lua. It is part of
-- permit/transaction.lua.

-- How many of the free permits are kept for Redisson: 1 or 0. Those are not in free until commit.
local left_free = 0

-- What an earlier script has left is theirs until they have taken one, or their time is over. A request of
-- again+<n> says that the caller has heard n releases of theirs: then they have had their turn.
do
  local heard
  for i = 8, #ARGV, 5 do heard = heard or string.match(ARGV[i], '^again%+([1-9]%d*)$') end
  if moving or not free then -- nothing is kept here
  elseif heard and free > 0 then
    redis.pcall('DEL', HOLDOFF)
    redis.pcall('SET', TURNS, math.min(tonumber(heard), 256), 'PX', NEAR)
  else
    local there = redis.pcall('GET', HOLDOFF)
    there = type(there) == 'string' and tonumber(there)
    if there then
      -- inline shared/theirturn.lua
      there = their_turn and there
    end
    if there and free < there then
      redis.pcall('DEL', HOLDOFF)
      redis.pcall('SET', TURNS, '1', 'PX', NEAR)
    elseif there then
      left_free = 1
      free = free - 1
    end
  end
end

-- Counts a turn of ours as over, after permits were given back, and leaves one of them where the next turn is
-- Redisson's.
local function leave_one()
  if left_free == 0 and not moving and free and free > 0 and is_redissons() then
    left_free = 1
    free = free - 1
  end
end
