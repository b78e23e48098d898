-- barrier_attend: renew the leases of a client's arrivals and of its membership, and read the state. It also
-- finds arrivals that Redis has lost, and begins a membership again that was. Safe to repeat.
--
-- KEYS  as in barrier.lua
-- ARGV  1 client id, 2 lease in ms, 3 channel, 4 publish verb
--       5 generation in which the client has arrivals, 6 how many at least: 0 for none
--       7 id of its membership, or empty
--       8 the highest generation that the client has seen, or 0
-- Reply state as of barrier.lua, and 1 if that membership is over, or dead; else 0
-- include barrier.lua

if moving and ARGV[7] ~= '' then moving.need(KEYS[4]) end
-- Cuts leases that have more left than anybody has said: the server's clock was set back since. Nobody might
-- be left to renew them. It takes no time from those who live.
local function cut(set)
  if moving and moving.lacks(set) then return end
  local most = decimal(now + 1 + barrier.lease)
  local last = redis.call('ZRANGE', set, -1, -1, 'WITHSCORES')[2]
  if not last or (tonumber(last) or math.huge) <= tonumber(most) then return end
  redis.call('PEXPIRE', set, KEPT) -- first, because it is not refused for lack of memory, nor is what follows
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', set, '(' .. most, '+inf')) do redis.call('ZADD', set, 'XX', most, id) end
end
if barrier.lease > 0 then
  if barrier.waiting > 0 then cut(KEYS[2]) end
  cut(KEYS[4])
end

local generation, count = tonumber(ARGV[5]), tonumber(ARGV[6])
local seen = tonumber(ARGV[8])
if barrier.generation < seen then
  -- A restart or a failover lost it. Of generations up to that one nothing is known any more: who arrived in
  -- what is there may have gone on from it, and must not count again. One that is broken stays so until it is
  -- reset.
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
    redis.call('PEXPIRE', KEYS[1], KEPT) -- first, because it is not refused for lack of memory, nor is what follows
    extend(KEYS[2], ARGV[1], ARGV[2])
  end
end
if ARGV[7] ~= '' then
  redis.call('PEXPIRE', KEYS[1], KEPT)
  -- Of a barrier that is broken nobody becomes a member: who was taken for dead finds it broken.
  if barrier.phase ~= 'b' or redis.call('ZSCORE', KEYS[4], ARGV[7]) then belong(ARGV[7], ARGV[2]) end
  if barrier.phase == 'n' then advance() end
end
tell_what_changed()
local reply = round()
reply[8] = ARGV[7] ~= '' and not redis.call('ZSCORE', KEYS[4], ARGV[7]) and 1 or 0
return reply
