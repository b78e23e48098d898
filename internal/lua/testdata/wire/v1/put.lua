-- put: add plain permits, as a release does, and grant them to those who wait. Safe to repeat while it is remembered.
--
-- KEYS  as in take.lua, of a plain store
-- ARGV  1 owner id of this command, 2 inbox prefix, 3 publish verb, 4 floor: as in take.lua
--       5 how many
--       6 numbers of commands of this client that were answered
-- Reply 1 done, by this or an earlier copy; -4 not initialised
-- include token.lua
-- include permits.lua

local client, number = string.match(ARGV[1], '^([^:]+):(%d+)$')
acknowledge(client, ARGV[6])
local free = available()
if owned(client, number) then return 1 end
if not free then return -4 end
free = add(free, tonumber(ARGV[5]))
redis.call('SET', done(client, number), ARGV[5], 'PX', REMEMBERED)
if redis.call('EXISTS', KEYS[2]) == 1 then free = grant(free, nil, micros()) end
announce(free)
return 1
