-- one: how one party arrives. It defines arrive, for barrier/arrive.lua, which says what the arguments and the replies are, and
-- for barrier/together.lua. The id is ARGV[1]. before: what came of an earlier copy of the command.

-- Refuses, and records that: a late copy must not arrive for a party that has left.
local function refuse(why)
  record(why)
  return why, 0, 0
end

local function arrive(before)
  if before then
    local generation, index = string.match(before, '^(%d+):(%d+)$')
    if not generation then return tonumber(before) or REPLY_GIVENUP, 0, 0 end
    generation = tonumber(generation)
    local leads = barrier.generation == generation and barrier.phase == 'a' and barrier.leader == ARGV[1]
    return generation, tonumber(index), leads and 1 or 0
  end
  if barrier.phase == 'b' then return refuse(0) end
  local parties = tonumber(ARGV[3])
  if barrier.waiting > 0 and barrier.parties ~= parties then return refuse(REPLY_PARTIES) end
  if barrier.phase == 'a' then return REPLY_ACTING, 0, 0 end

  local index, last = barrier.waiting, barrier.waiting + 1 >= parties
  local waits = not last or ARGV[5] == '1'
  if waits and index == 0 then
    local kind = redis.call('TYPE', ARRIVALS).ok
    if kind ~= 'none' and kind ~= 'zset' then
      error('WRONGTYPE ' .. ARRIVALS .. ' holds data that is not of a barrier')
    end
  end
  local client = string.match(ARGV[1], '^[^:]+')
  arrived(client) -- fails unless that is a number
  if barrier.phase == 'n' then succeed(barrier) end
  local generation = barrier.generation
  record(decimal(generation) .. ':' .. index) -- when memory is short, Redis refuses this, and nothing is done
  if barrier.phase == 'n' then clear('w') end
  if ARGV[6] ~= '' then belong(ARGV[6], ARGV[4], true) end
  local leads = 0
  if waits then
    barrier.parties, barrier.waiting = parties, index + 1
    if last then barrier.phase, barrier.leader, leads = 'a', ARGV[1], 1 end
    redis.call('HSET', NAME, 'parties', parties, 'waiting', barrier.waiting,
      'phase', barrier.phase, 'leader', barrier.leader)
    redis.call('HINCRBY', NAME, 'c:' .. client, '1')
    redis.call('PEXPIRE', NAME, KEPT)
    extend(ARRIVALS, client, ARGV[4])
    if index == 0 then sooner = false end -- no other waits
  else
    advance()
    over = true
  end
  return generation, index, leads
end
