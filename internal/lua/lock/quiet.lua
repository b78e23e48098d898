-- quiet: whether no process of Redisson waits, nor has of late, in a release. It makes no functions. While a slot
-- moves, it asks for two keys that are missing, and is told so: see shared/moves.lua.
-- inline keys RELEASED EAR TURNS FAIR
local quiet = not moving and redis.pcall('EXISTS', TURNS, FAIR) == 0
if quiet then
  -- inline shared/theirs.lua
  quiet = not theirs
end
