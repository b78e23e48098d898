-- place: numbers the places in a queue.
-- include shared/token.lua

-- The number of a new place, which is greater than those before, also when a failover has lost some: so it
-- is made as a token is. now: what clock returned.
local function next_place(now) return tonumber((next_token(now))) end
