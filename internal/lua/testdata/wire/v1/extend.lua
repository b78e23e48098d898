-- extend: how a holder's permits are named and their lease is extended. Included by what renews, one or many semaphores.

-- The permits of one owner are 16 raw bytes each, as Redisson's: ten characters of the client id, the owner's number, and the
-- permit's. So they need not be stored, and whose they are can be told. Two owners that are alive at once share these only if
-- fifty random bits of two clients are the same.
local function base(client, number)
  return string.sub(client .. '..........', 1, 10) .. string.char(
    math.floor(number / 16777216) % 256, math.floor(number / 65536) % 256, math.floor(number / 256) % 256, number % 256)
end

-- The permits from..to-1 of an owner, each after its score if there is one.
local function permits(prefix, from, to, score)
  local all = {}
  for i = from, to - 1 do
    if score then all[#all + 1] = score end
    all[#all + 1] = prefix .. string.char(math.floor(i / 256), i % 256)
  end
  return unpack(all)
end

-- A holder is <permits>:<token>:<1 until its first renewal after a grant by message, else 0>:<client id>:<number>.
local function parse_holder(text)
  local n, token, short, client = string.match(text or '', '^(%d+):(%d+):([01]):([^:]+):%d+$')
  return tonumber(n), token, short, client
end

local HOLDERS_KEPT = '172800000' -- two days, in ms: longer than any lease

-- Extends what an owner has, and returns its token and how many permits; nil when it has none, or only some that are over.
-- now: the server's clock in microseconds.
local function extend(timeouts, holders, client, number, lease, now)
  local prefix = base(client, number)
  local held = redis.call('HGET', holders, prefix)
  local n, token, short = parse_holder(held)
  if not n then return nil end
  local ends = redis.call('ZSCORE', timeouts, prefix .. '\0\0')
  if not ends or tonumber(ends) * 1000 <= now then return nil end
  redis.call('ZADD', timeouts, 'XX', permits(prefix, 0, n, string.format('%.0f', math.ceil(now / 1000) + lease)))
  if short == '1' then
    redis.call('HSET', holders, prefix, n .. ':' .. token .. ':0:' .. client .. ':' .. number)
  end
  redis.call('PEXPIRE', holders, HOLDERS_KEPT)
  return tonumber(token), n
end
