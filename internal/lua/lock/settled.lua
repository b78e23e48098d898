-- settled: an acquire that a server refuses which may have lost the lock. It comes before lock/acquire.lua.
--
-- A server that knows the name's token has kept its data. One that does not may have been restarted empty:
-- then somebody may still trust a lease that it has forgotten. So it must have been up for as long as a lease
-- lasts. The server subtracts whole seconds from whole seconds: so it may say up to a second too much.
--
-- Keys, ARGV  as in lock/acquire.lua, and
-- ARGV  7 ms that the server must have been up
-- Reply as in lock/acquire.lua, and
--       {YOUNG, seconds, 0}  it has been up for less
-- keys TOKEN
-- moves
if redis.call('EXISTS', TOKEN) == 0 then
  local up = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
  if not up or (up - 1) * 1000 < tonumber(ARGV[7]) then return {REPLY_YOUNG, up or 0, 0} end
end
