-- kept: how long a turn of Redisson's is kept for it: see shared/turns.lua.
local KEPT = '20' -- ms
