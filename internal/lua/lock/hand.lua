-- hand: makes a waiter the owner, and tells it. It is made to be inlined where these are known, as text:
-- client, inbox, number, lease, token, reserved, others, now; mark: what its value says of the reserved ones;
-- ms: how long the key lives; short: how long the lease is until its first renewal; former: a list of the
-- fields of the lock that go, or nil.
--
-- All writes come before PUBLISH. Redis may refuse the first write of a script (READONLY, OOM), and then
-- nobody must have heard that he owns the lock. The new owner is written before the former one goes: while a
-- slot moves, nobody can make a key again that is gone.
local id = client .. ':' .. number
redis.call('HSET', NAME, id, 't' .. token .. mark .. '/' .. lease .. '!' .. now)
redis.call('PEXPIRE', NAME, ms)
for i = 1, former and #former or 0 do
  if former[i] ~= id then redis.call('HDEL', NAME, former[i]) end
end
-- A caller who may not publish sends none: whoever waits asks again soon.
redis.pcall(VERB, inbox, '1 g ' .. number .. ' ' .. token .. ' ' .. reserved .. ' ' .. others
  .. ' ' .. now .. ' ' .. short .. ' ' .. NAME)
