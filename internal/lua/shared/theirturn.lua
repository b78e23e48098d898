-- theirturn: what is left of the turn that HOLDOFF keeps for Redisson. It makes no functions. A turn that seems to last
-- for longer than any does was kept before the server's clock was set back: it is over. To wait for its end would
-- keep all processes of ours back for as long as the clock was set back by.
local lasts = redis.pcall('PTTL', HOLDOFF)
local kept = type(lasts) == 'number' and lasts > 0 and lasts <= tonumber(KEPT)
local their_turn = kept and lasts or nil -- ms; nil: it is over, or there is none
