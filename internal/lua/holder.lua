-- extend: how a holder's permits are named and described. Included by what reads or writes them.

-- The permits of one owner are 16 raw bytes each, as Redisson's: ten characters of the client id, the owner's number, and the
-- permit's. So they need not be stored, and whose they are can be told. Two owners that are alive at once share these only if
-- fifty random bits of two clients are the same.
local function base(client, number)
  return string.sub(client .. '..........', 1, 10) .. string.char(
    math.floor(number / 16777216) % 256, math.floor(number / 65536) % 256, math.floor(number / 256) % 256, number % 256)
end

-- Appends the permits from..to-1 of an owner to a list, each after its score if there is one.
local function append_permits(list, prefix, from, to, score)
  for i = from, to - 1 do
    if score then list[#list + 1] = score end
    list[#list + 1] = prefix .. string.char(math.floor(i / 256), i % 256)
  end
end

-- A holder is <permits>:<token>:<1 until its first renewal after a grant by message, else 0>:<client id>:<number>.
local function parse_holder(text)
  local n, token, short, client = string.match(text or '', '^(%d+):(%d+):([01]):([^:]+):%d+$')
  return tonumber(n), token, short, client
end

local HOLDERS_KEPT = '172800000' -- two days, in ms: longer than any lease
