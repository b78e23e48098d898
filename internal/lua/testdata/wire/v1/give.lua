-- give: end a tenure, or a part of it: take back what this id holds, remove where it queues when asked to, and grant what is free
-- to those who wait. Safe to repeat: the second time finds nothing.
--
-- Permits whose lease is over, but which nobody has taken back, are still the owner's: nobody else had them in between.
--
-- KEYS  as in take.lua
-- ARGV  1 owner id, 2 inbox prefix, 3 publish verb, 4 floor: as in take.lua
--       5 entry    the id's queue entry when it may be queued, else the empty string
--       6 keep     how many permits it keeps
-- Reply 1 the id held permits, 0 it did not
-- include token.lua
-- include permits.lua

if ARGV[5] ~= '' then redis.pcall('LREM', KEYS[2], 0, ARGV[5]) end
local free = available()
local client, number = string.match(ARGV[1], '^([^:]+):(%d+)$')
local freed = disown(client, number, tonumber(ARGV[6]))
free = add(free, freed or 0)
if redis.call('EXISTS', KEYS[2]) == 1 then free = grant(free, nil, micros()) end
if freed and freed > 0 then announce(free) end
return freed and 1 or 0
