-- permits: how the permits of a semaphore are counted and granted, whichever its store is. Included by every script that can
-- find some free while somebody waits. Uses the store, KEYS[1..4], ARGV[1..4] and token.lua.
-- include store.lua
-- include queue.lua

-- How many waiters one script grants to at most; those who wait behind ask in time.
local MOST = 1000

-- How many waiters are looked at behind one that does not fit, for those that may pass it.
local LOOK = 100

-- The free permits, or nil when nobody has initialised the semaphore.
local function available()
  local text = redis.call('GET', KEYS[1])
  if not text then return nil end
  if not string.find(text, '^-?%d+$') then error('WRONGTYPE ' .. KEYS[1] .. ' holds data that is not a semaphore') end
  return tonumber(text)
end

-- Adds to the free permits and returns how many there are; nil, and nothing, when there is no semaphore.
local function add(free, n)
  if free and n ~= 0 then return redis.call('INCRBY', KEYS[1], decimal(n)) end
  return free
end

local function parse_demand(text)
  local n, flags = string.match(text, '^(%d+)(%a*)$')
  return tonumber(n), flags
end

-- Grants free permits to those who wait, the first first, for as long as the head fits. Only entries that say so (flag p) pass a
-- head that does not, and stop behind the first that does not say so. A head that is gone is dropped, and so is one that asks
-- for more than there are, unless it waits for that to change (flag g); it is told to ask. self is the caller's own entry,
-- which needs no message. Returns what is free then, and the token of self if that was granted.
-- Of every entry the writes come first and PUBLISH comes last: see grant.lua.
local function grant(free, self, now)
  local at, mine = 0, nil
  for _ = 1, MOST do
    if not free or free < 1 or at > LOOK then break end
    local entry = redis.call('LINDEX', KEYS[2], at)
    if not entry then break end
    local client, number, lease, demand = string.match(entry, '^1:([^:]+):(%d+):(%d+):(%w+)$')
    local n, flags = parse_demand(demand or '')
    if at > 0 and not (n and string.find(flags, 'p', 1, true)) then break end
    local lives = n and (entry == self or alive(client))
    local fits = lives and n <= free
    local never = lives and not fits and not string.find(flags, 'g', 1, true) and n > capacity(free)
    if lives and not fits and not never then
      at = at + 1
    else
      if at == 0 then redis.call('LPOP', KEYS[2]) else redis.call('LREM', KEYS[2], 1, entry) end
      if fits and entry == self then
        mine, free = take(client, number, n, tonumber(lease), now), free - n
      elseif fits then
        local short = math.min(tonumber(lease), SHORT)
        local _, text = take(client, number, n, short, now, true)
        free = free - n
        if short < SHORT then tell_next(short) end
        tell_grant(client, KIND, number, text, 0, 0, now, short)
      elseif never then
        tell(client, 'a', number)
      end
    end
  end
  return free, mine
end

-- Tells Redisson's waiters, which try again, that permits are free.
local function announce(free)
  if free and free > 0 then redis.call(ARGV[3], KEYS[4], free) end
end

-- Ends what these ids hold, and grants what that makes free.
local function give_back(ids)
  local free, freed = available(), 0
  for _, id in ipairs(ids) do
    local client, number = string.match(id, '^([^:]+):(%d+)$')
    freed = freed + (disown(client, number, 0) or 0)
  end
  free = add(free, freed)
  free = grant(free, nil, micros())
  if freed > 0 then announce(free) end
end
