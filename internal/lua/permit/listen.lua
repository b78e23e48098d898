-- listen: leaves a single request to permit/trade.lua where processes of Redisson may be concerned: see
-- shared/turns.lua. That is before a store.
-- inline keys RELEASED EAR HOLDOFF
local listen = free and redis.pcall('PUBSUB', NUMSUB, RELEASED, EAR)
if free and (listen.err or listen[2] > 0 or redis.pcall('EXISTS', HOLDOFF) ~= 0) then free = nil end
