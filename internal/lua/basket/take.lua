-- take: take several locks in one step: all or none, or as many as are free, in the order in which they are
-- named. A lock is free when nobody owns it and nobody waits for it. Nobody is queued. Safe to repeat: an
-- owner that asks again keeps the token that it has.
--
-- KEYS, ARGV  as in basket/keys.lua, and
-- ARGV  2 all, or some: those before the first that is not free
--       3 microseconds since the epoch, after which it does nothing; 0: it may run at any time
-- Reply {how many were taken, how many could have been, now, tokens...}
--       {LATE, 0, now}  the deadline was over: nothing was done
-- include basket/keys.lua
-- include shared/token.lua
-- include shared/value.lua

local now = clock()
if given[3] ~= '0' and now > given[3] then return {REPLY_LATE, 0, now} end

-- First it only looks: foreign data ends the script before anything is written.
local free, tokens, first = count, {}, {}
for i = 1, count do first[2 * i - 1], first[2 * i] = all[3 * i - 2], all[3 * i - 1] end
if redis.call('EXISTS', unpack(first)) > 0 then
  for i = 1, count do
    turn_to(i)
    if redis.call('EXISTS', NAME, QUEUE) > 0 then
      tokens[i] = parse_token(redis.call('HGET', NAME, ARGV[1]))
      if not tokens[i] then
        free = i - 1
        break
      end
    end
  end
end
if free < count and given[2] == 'all' then return {0, free, now} end

local reply, begun = {free, free, now}, {}
for i = 1, free do
  local lock, lease = all[3 * i - 2], given[3 * i + 3]
  if not tokens[i] then
    turn_to(i)
    local done, token = pcall(next_token, now)
    if not done then
      if begun[1] then redis.call('DEL', unpack(begun)) end -- nobody has heard of them
      error(token, 0)
    end
    tokens[i], begun[#begun + 1] = token, lock
    redis.call('HSET', lock, given[3 * i + 1], 't' .. token .. '/' .. lease)
  end
  redis.call('PEXPIRE', lock, lease)
  reply[i + 3] = tokens[i]
end
return reply
