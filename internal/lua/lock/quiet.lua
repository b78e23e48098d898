-- quiet: whether no process of Redisson waits, nor has of late, in a release. It makes no functions.
-- inline keys RELEASED EAR TURNS FAIR
local quiet = not moving and redis.pcall('EXISTS', TURNS, FAIR) == 0
local listen = quiet and redis.pcall('PUBSUB', NUMSUB, RELEASED, EAR)
if quiet then quiet = listen.err or listen[2] <= listen[4] end
