-- attend: renew the leases of a client's arrivals and of its membership, and read the state. When Redis has
-- lost arrivals, this breaks the generation. When Redis has lost the membership, it begins again. Safe to
-- repeat.
--
-- Keys  as in barrier/state.lua
-- ARGV  1 client id, 2 lease in ms
--       3 generation in which the client has arrivals, 4 how many at least; 0: none
--       5 id of its membership, or empty
--       6 highest generation that the client has seen, or 0
-- Reply state (see round in barrier/state.lua), followed by 1 if that membership was ended or is dead, else 0
-- include barrier/state.lua

if moving and ARGV[5] ~= '' then moving.need(MEMBERS) end
-- Cuts leases that have more left than anybody has asked for: the server's clock was set back since, and
-- perhaps nobody is left to renew them. That takes no time from those who live.
local function cut(set)
  if moving and moving.lacks(set) then return end
  local most = decimal(now + 1 + barrier.lease)
  local last = redis.call('ZRANGE', set, '-1', '-1', 'WITHSCORES')[2]
  if not last or (tonumber(last) or math.huge) <= tonumber(most) then return end
  redis.call('PEXPIRE', set, KEPT) -- first: Redis never refuses it for lack of memory, nor what follows
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', set, '(' .. most, '+inf')) do
    redis.call('ZADD', set, 'XX', most, id)
  end
end
if barrier.lease > 0 then
  if barrier.waiting > 0 then cut(ARRIVALS) end
  cut(MEMBERS)
end

local generation, count = tonumber(ARGV[3]), tonumber(ARGV[4])
local seen = tonumber(ARGV[6])
if barrier.generation < seen then
  -- A restart or a failover has lost what the client saw. Nothing is known any more of the generations up to
  -- that one. Those who arrived in the generation that is here may have gone on from it, and must not count
  -- again. A barrier that is broken stays so until it is reset.
  local was_broken = barrier.phase == 'b'
  barrier.bad, barrier.generation = '', math.max(seen, clock())
  barrier.first = barrier.generation + 1
  advance()
  if was_broken then break_generation('s') end
  over = true
elseif count > 0 and barrier.generation == generation and is_waiting() then
  if arrived(ARGV[1]) < count then
    break_generation('s')
    over = true
  else
    redis.call('PEXPIRE', NAME, KEPT) -- first: Redis never refuses it for lack of memory, nor what follows
    extend(ARRIVALS, ARGV[1], ARGV[2])
  end
end
if ARGV[5] ~= '' then
  redis.call('PEXPIRE', NAME, KEPT)
  -- Nobody becomes a member of a broken barrier: a client that was taken for dead must find it broken.
  if barrier.phase ~= 'b' or redis.call('ZSCORE', MEMBERS, ARGV[5]) then belong(ARGV[5], ARGV[2]) end
  if barrier.phase == 'n' then advance() end
end
tell_what_changed()
local reply = round()
reply[8] = ARGV[5] ~= '' and not redis.call('ZSCORE', MEMBERS, ARGV[5]) and 1 or 0
return reply
