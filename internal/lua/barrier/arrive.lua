-- arrive: arrive at a barrier. The last party begins the next generation; if there is an action, the reply
-- says to run it first. Takes effect once.
--
-- Keys  as in barrier/state.lua
-- ARGV  1 id of this command, 2 answered commands: see shared/once.lua
--       3 parties
--       4 lease of all arrivals of this client, in ms
--       5 1 if there is an action
--       6 id of the membership that the client has, or has from now on; empty: it need not be a member
-- Reply {generation, index, 1 to run the action, state}  arrived, by this or an earlier copy
--       {0, 0, 0, state}   not arrived: the generation is broken
--       {PARTIES, 0, 0, state}  not arrived: others wait for another number of parties
--       {GIVENUP, 0, 0, state}  not arrived: barrier/settle.lua came before
--       {ACTING, 0, 0, state}  not arrived: all parties of this generation are there, and it is not over yet
--       state: see round in barrier/state.lua
-- include barrier/quick.lua
-- include shared/once.lua

if moving and ARGV[6] ~= '' then moving.need(DONE .. ':' .. ARGV[6]) end
local before = recorded('^%d+:%d+$', '^%-?[01]$', '^given up$')
-- include barrier/state.lua

local function reply(generation, index, leads)
  tell_what_changed()
  return forget_answered({generation, index, leads, round()})
end

-- Refuses, and records that: a late copy must not arrive for a party that has left.
local function refuse(why)
  record(why)
  return reply(why, 0, 0)
end

if before then
  local generation, index = string.match(before, '^(%d+):(%d+)$')
  if not generation then return reply(tonumber(before) or REPLY_GIVENUP, 0, 0) end
  generation = tonumber(generation)
  local leads = barrier.generation == generation and barrier.phase == 'a' and barrier.leader == ARGV[1]
  return reply(generation, tonumber(index), leads and 1 or 0)
end
if barrier.phase == 'b' then return refuse(0) end
local parties = tonumber(ARGV[3])
if barrier.waiting > 0 and barrier.parties ~= parties then return refuse(REPLY_PARTIES) end
if barrier.phase == 'a' then return reply(REPLY_ACTING, 0, 0) end

local index, last = barrier.waiting, barrier.waiting + 1 >= parties
local waits = not last or ARGV[5] == '1'
if waits and index == 0 then
  local kind = redis.call('TYPE', ARRIVALS).ok
  if kind ~= 'none' and kind ~= 'zset' then
    error('WRONGTYPE ' .. ARRIVALS .. ' holds data that is not of a barrier')
  end
end
arrived(string.match(ARGV[1], '^[^:]+')) -- fails unless that is a number
if barrier.phase == 'n' then succeed(barrier) end
local generation = barrier.generation
record(decimal(generation) .. ':' .. index) -- when memory is short, Redis refuses this, and nothing is done
if barrier.phase == 'n' then clear('w') end
if ARGV[6] ~= '' then belong(ARGV[6], ARGV[4], true) end
local leads = 0
if waits then
  local client = string.match(ARGV[1], '^[^:]+')
  barrier.parties, barrier.waiting = parties, index + 1
  if last then barrier.phase, barrier.leader, leads = 'a', ARGV[1], 1 end
  redis.call('HSET', NAME, 'parties', parties, 'waiting', barrier.waiting,
    'phase', barrier.phase, 'leader', barrier.leader)
  redis.call('HINCRBY', NAME, 'c:' .. client, '1')
  redis.call('PEXPIRE', NAME, KEPT)
  extend(ARRIVALS, client, ARGV[4])
  if index == 0 then sooner = false end -- nobody else waits
else
  advance()
  over = true
end
return reply(generation, index, leads)
