-- keys: what every script for one name begins with. A call to a cluster names KEYS[1] alone, the key with the primitive's own
-- name: a primary whose slot is moving refuses a call of which it has some keys and not all (TRYAGAIN), and most companions
-- do not exist most of the time. The others follow the arguments: KEYS[2] and so on, how many they are, keys that exist on
-- neither side, and how many those are.
--
-- Of a slot that is moving, the old primary has what has not moved yet, and can make no key; a call goes to the new one when
-- KEYS[1] is not at the old one. So neither side may take what it does not have for absent, and neither may make it: the
-- slot could not be moved any further. Only KEYS[1] is known: it is here, or nowhere. A script looks at all it must have
-- before its first write, and never lets go of a key that it still needs.

-- nil unless the slot is moving, and something is not here.
--   lacks(key)  it is not here: it may be on the other side
--   has(key)    it is here, or may be made here because it exists on neither side
--   need(key)   ends the script unless that is so
local moving

local KEYS, ARGV = KEYS, ARGV -- what a server may not let us change, and what is found faster
if not KEYS[2] then
  KEYS, ARGV = {KEYS[1]}, {unpack(ARGV)}
  local nowhere = {}
  for _ = 1, tonumber(table.remove(ARGV)) do nowhere[table.remove(ARGV)] = true end
  for i = table.remove(ARGV) + 1, 2, -1 do KEYS[i] = table.remove(ARGV) end
  -- A command over several keys is refused on both sides when one of them is missing.
  local all = redis.pcall('EXISTS', unpack(KEYS))
  if type(all) ~= 'number' and string.find(all.err, 'non local key', 1, true) then
    local function has(key) -- or may make it
      local here = redis.pcall('EXISTS', key) -- no number on the old primary when it is not there
      return here == 1 or here == 0 and nowhere[key]
    end
    moving = {
      lacks = function(key) return redis.pcall('EXISTS', key) ~= 1 end,
      has = has,
      need = function(key)
        if not has(key) then error('TRYAGAIN the slot is moving, and ' .. key .. ' may be on the other side') end
      end,
    }
  end
end
