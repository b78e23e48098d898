-- moving: what a script for one name does in a slot that moves. Only the careful text of a script begins with
-- this file: a client of a cluster sends that when the plain text has said that the slot moves (see
-- shared/moves.lua). names.go makes what stands in front of this file. That defines NAME, SLOTS (which is true),
-- the keys and channels that follow from the name, and COMPANIONS, a list of these keys.
--
-- A call names only the key with the primitive's own name. The reason is a slot that moves: its primary
-- refuses a call (TRYAGAIN) when it has some of the call's keys and not all, and most companions do not exist
-- most of the time.
--
-- ARGV  the script's arguments
--       keys that exist on neither side of the move
--       how many keys that was
--
-- While a slot moves, the old primary has what has not moved yet, and can make no key. A call goes to the new
-- primary when NAME is not at the old one. So a key that is not here may be on the other side. A script
-- must not take it for absent. It must not make it either: then the slot could never be moved to its end.
-- NAME alone is certain: it is here, or nowhere. So a script looks at all that it must have before its
-- first write, and never lets go of a key that it still needs.

-- nil unless the slot is moving and something is not here.
--   lacks(key)  the key is not here, and may be on the other side
--   has(key)    the key is here, or exists on neither side and may be made here
--   need(key)   ends the script unless has(key)
--   gone(key)   the key exists on neither side, and may not be made here. Ends the script when that is not known
local moving

local ARGV = {unpack(ARGV)} -- some servers refuse changes of the globals
do
  local nowhere = {}
  for _ = 1, tonumber(table.remove(ARGV)) do nowhere[table.remove(ARGV)] = true end
  local all = redis.pcall('EXISTS', NAME, unpack(COMPANIONS))
  -- inline shared/moves.lua
  if moves then
    local function has(key)
      local here = redis.pcall('EXISTS', key) -- an error on the old primary when the key is not there
      return here == 1 or here == 0 and nowhere[key]
    end
    local function elsewhere(key) error('TRYAGAIN the slot is moving, and ' .. key .. ' may be on the other side') end
    moving = {
      lacks = function(key) return redis.pcall('EXISTS', key) ~= 1 end,
      has = has,
      need = function(key)
        if not has(key) then elsewhere(key) end
      end,
      gone = function(key)
        if has(key) then return false end
        return nowhere[key] or elsewhere(key)
      end,
    }
  end
end
