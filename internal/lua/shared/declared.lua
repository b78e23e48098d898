-- declared: which keys a script may use. Some servers refuse a script that uses a key which its call has not
-- named. There a call names all keys that follow from the name, and from the ids in its arguments. What that
-- leaves are the keys of other ids. A script finds these ids in Redis, and asks for their keys before it
-- writes anything. Then the caller names them as well, and runs the script again.
--
--   undeclared(key)  whether the key was not named; nil in place of a function: the server does not mind, as
--                    nearly all do not
--   demand(ends)     the text of an error that asks for keys. It has their ends, without spaces
--
-- A call whose last key is NAME once more is the last of such a row. Then a script makes do with what was
-- named, where it can.
local undeclared, demand
if KEYS[2] then
  local named = {}
  for _, key in ipairs(KEYS) do named[key] = true end
  undeclared = function(key) return not named[key] end
  demand = function(ends)
    return 'LATCHKEY_UNDECLARED ' .. table.concat(ends, ' ', 1, math.min(#ends, 1000)) .. ' .'
  end
end
