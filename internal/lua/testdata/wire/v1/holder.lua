-- holder: how a holder's permits are named and described. Included by what reads or writes them.

-- The permits of one owner are 16 raw bytes each, as Redisson's: the last ten characters of the client id, the owner's number
-- without its secret, and the permit's. So they need not be stored, and whose they are can be told. Two owners that are alive
-- at once share these only if fifty random bits of two clients are the same. Returns what they begin with.
local function base(owner)
  local client, number = string.match(owner, '^([^:]+):(%d+)$')
  if #number > 9 then number = string.sub(number, 1, -10) end
  local high = math.floor(number / 65536)
  local low = number - high * 65536
  local second = math.floor(high / 256)
  local fourth = math.floor(low / 256)
  return string.sub('..........' .. client, -10) .. string.char(second % 256, high - second * 256, fourth, low - fourth * 256)
end

-- Appends the permits from..to-1 of an owner to a list, each after its score if there is one.
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

-- A holder is <permits>:<token>:<1 until its first renewal after a grant by message, else 0>:<lease in
-- ms>:<owner id>.
local function parse_holder(text)
  local n, token, short, lease, owner = string.match(text or '', '^(%d+):(%d+):([01]):(%d+):([^:]+:%d+)$')
  -- Each permit is handled by itself: not as many as somebody says, but as one request takes, and one
  -- command can name.
  if not n or #n > 4 or #token > 16 or #lease > 10 or tonumber(n) == 0 or tonumber(n) > 1000 then return nil end
  return tonumber(n), token, short, owner, lease
end

local HOLDERS_KEPT = '172800000' -- two days, in ms: longer than any lease
