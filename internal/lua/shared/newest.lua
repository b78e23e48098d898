-- newest: whether the clock can be the next token, as it nearly always can: see next_token in
-- shared/token.lua. It puts that into a local newest. It is made to be inlined where these are known: now,
-- which TOKEN holds already; last: what that held before; floor: the highest token that the client has seen.
local newest = last and last < now and floor < now and #last == 16 and last > '1'
  and string.byte(last, 7) == string.byte(now, 7)
