-- holder: how the permits of a holder are named, and how the holder is described.

-- Each permit of an owner is 16 raw bytes, as Redisson's are: the last ten characters of the client id, four
-- bytes of the owner's number without its secret, two bytes of the permit's own number. So the names need not
-- be stored, and a name tells whose permit it is. Two owners that live at the same time share names only if
-- fifty random bits of two clients are the same. Returns the first 14 bytes.
local function base(owner)
  local prefix
  -- inline permit/prefix.lua
  return prefix
end

-- Appends the permits from..to-1 of an owner to a list. If a score is given, it stands before each permit.
local function append_permits(list, prefix, from, to, score)
  local size = #list
  for i = from, to - 1 do
    if score then
      size = size + 1
      list[size] = score
    end
    size = size + 1
    list[size] = prefix .. string.char(math.floor(i / 256), i % 256)
  end
end

-- Reads a holder: <permits>:<token>:<short>:<lease in ms>:<owner id>. short is 1 from a grant by message
-- until the first renewal, else 0. Returns permits, token, short, owner and lease, or nil.
local function parse_holder(text)
  local n, token, short, lease, owner = string.match(text or '', '^(%d+):(%d+):([01]):(%d+):([^:]+:%d+)$')
  -- The scripts handle each permit by itself. So the number is not believed when one request cannot take as
  -- many, or one command cannot name them.
  if not n or #n > 4 or #token > 16 or #lease > 10
    or tonumber(n) == 0 or tonumber(n) > 1000 then return nil end
  return tonumber(n), token, short, owner, lease
end

local HOLDERS_KEPT = '172800000' -- two days, in ms: longer than any lease
