-- fresh: gets the token of a lock that is free, in an acquire, into the local token. It ends the script when
-- the deadline of the attempt is over. It uses ARGV[2..4] of lock/acquire.lua. It is made to be inlined where
-- TOKEN is known.
local now, floor = ARGV[2], ''
if #now ~= 16 then
  floor = now
  -- inline shared/now.lua
  if ARGV[4] and #ARGV[4] > 5 and now > string.sub(ARGV[4], 5) then return {REPLY_LATE, 0, now} end
end
local last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
-- inline shared/newest.lua
local token = now
if not newest then
  -- inline shared/behind.lua
  token = token_after(now, last, floor, 0)
end
