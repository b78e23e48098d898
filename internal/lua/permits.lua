-- permits: a transaction on a semaphore, whichever its store is: what it finds is read once, and changed here; commit writes it
-- and sends the messages. So many requests share the commands that they cost, and nothing is written by a script that fails
-- before, nor told by one whose writes are refused (READONLY, OOM).
-- Uses the store, KEYS[1..4] and ARGV[1..4] of trade.lua.
-- include token.lua
-- include queue.lua

-- How many waiters one script grants to at most, how many entries it drops or passes, and how many it looks at behind one that
-- does not fit, for those that may pass that. Whoever asks then is told to ask again at once.
local MOST, DROPS, LOOKS = 1000, 20000, 100

local now = micros()

-- Runs a command on any number of arguments, and returns the sum of its replies.
local function many(command, key, list)
  local sum = 0
  for i = 1, #list, 1000 do
    sum = sum + redis.call(command, key, unpack(list, i, math.min(i + 999, #list)))
  end
  return sum
end

-- The next token or sequence number: see next_token, which does the same with fewer commands for one.
local last
local function next_number()
  if not last then
    last = tonumber(redis.call('GET', KEYS[3]) or '0')
    if not last or last < 0 or last >= 9007199254740991 then
      error('WRONGTYPE ' .. KEYS[3] .. ' holds no fencing token')
    end
    last = math.max(last, tonumber(ARGV[4]))
  end
  last = math.max(last + 1, now)
  return last
end

-- include store.lua

-- The free permits, or nil when nobody has initialised the semaphore.
local free = redis.call('GET', KEYS[1])
if free and not string.find(free, '^-?%d+$') then
  error('WRONGTYPE ' .. KEYS[1] .. ' holds data that is not a semaphore')
end
free = free and tonumber(free) or nil
local found = free   -- what Redis has
local bonus = 0      -- by how much it changes beside what is taken and given back
local given = false  -- somebody gave permits back
local briefest = SHORT -- ms: the shortest lease that began while somebody waited

local function add(n)
  if free then free = free + n end
  given = given or n > 0
end

-- How many permits there are, held or free.
local function capacity() return (free or 0) + out() end

-- The queue: what was read of it, and behind all that is in Redis what joined. A place is {entry}, with gone = true when it is
-- not queued any more.
local list, more, tail = {}, true, {}
local removals = {} -- entries that are removed wherever they stand in what was not read
local first = 1     -- all places before it are gone
local chunk = 2     -- how many are read at a time
local joined, length = false, nil

local function place_at(i)
  while more and i > #list do
    local got = redis.call('LRANGE', KEYS[2], #list, #list + chunk - 1)
    local owners = {}
    for _, entry in ipairs(got) do
      list[#list + 1] = {entry, gone = removals[entry]}
      removals[entry] = nil
      owners[#owners + 1] = string.sub(entry, 3)
    end
    prefetch(owners)
    more = #got == chunk
    chunk = math.min(2 * chunk, 500)
  end
  return list[i] or tail[i - #list]
end

-- The first place that is queued, nil when there is none.
local function head()
  local place = place_at(first)
  while place and place.gone do
    first = first + 1
    place = place_at(first)
  end
  return place
end

local function find(entry)
  for i = first, #list do
    if list[i][1] == entry and not list[i].gone then return list[i] end
  end
  for _, place in ipairs(tail) do
    if place[1] == entry and not place.gone then return place end
  end
  return nil
end

local function remove(entry)
  local place = find(entry)
  if place then place.gone = true elseif more then removals[entry] = true end
end

local function parse_demand(text)
  local n, flags = string.match(text, '^(%d+)(%a*)$')
  return tonumber(n), flags
end

local messages, told = {}, {}

-- Makes all waiters of a client ask again, once the changes are written.
local function ask(client, number)
  if not told[client] then
    told[client] = true
    messages[#messages + 1] = {client, 'a', number}
  end
end

-- Who may take free permits although somebody waits, after grant has looked at the queue as it is.
local ALL, PASSING, NOBODY = 1, 2, 3
local door = ALL

-- Grants free permits to those who wait, the first first, for as long as they fit: the first that does not holds up all others,
-- but for those that say so (flag p): they pass it, up to the next that does not say so. Entries of those who are gone are
-- dropped, and copies of what was granted before. So are those that ask for more than there are, and their clients told to
-- ask; but with flag g they wait aside, and hold up nobody. self is the caller's own entry, which needs no message. Returns the record of self if
-- that was granted.
local stuck, unfinished = 0, false -- with so many free permits nothing could be granted; it has stopped before the end
local function grant(self)
  if not free or free <= stuck then return nil end
  local mine
  head()
  local at, grants, drops, held_up = first, 0, 0, nil
  door = NOBODY
  while true do
    local place = place_at(at)
    if not place then
      door = held_up and PASSING or ALL
      break
    end
    if grants >= MOST or drops >= DROPS then
      unfinished = true
      break
    end
    if free < 1 or held_up and at - held_up > LOOKS then break end
    if not place.gone then
      local client, number, lease, demand = string.match(place[1], '^1:([^:]+):(%d+):(%d+):(%w+)$')
      local n, flags = parse_demand(demand or '')
      local function has(flag) return string.find(flags, flag, 1, true) end
      local aside = n and has('g') and n > capacity()
      if held_up and not aside and not (n and has('p')) then break end
      if not n or place[1] ~= self and not alive(client) or holding(client, number) then
        place.gone = true
        drops = drops + 1
      elseif n <= free then
        lease = tonumber(lease)
        local short = place[1] == self and lease or math.min(lease, SHORT)
        -- A fixed lease that short is not renewed: that it ends says nothing of its client.
        local record = take(client, number, n, short, place[1] ~= self and not (has('f') and lease <= SHORT))
        place.gone = true
        free = free - n
        grants = grants + 1
        briefest = math.min(briefest, short)
        if place[1] == self then
          mine = record
        else
          messages[#messages + 1] = {client, 'grant', number, record.token, short}
        end
      elseif aside then
        drops = drops + 1
      elseif n <= capacity() then
        held_up = held_up or at
      else
        place.gone = true
        drops = drops + 1
        ask(client, number)
      end
    end
    at = at + 1
  end
  stuck = math.max(free, 0)
  return mine
end

-- Queues an entry, unless it is queued. Returns its sequence, 0 when it was queued before; nil and the length when that is too
-- great.
local function join(entry, fresh, longest, aside, passing)
  joined = true
  if not fresh and (find(entry) or more and not removals[entry] and redis.call('LPOS', KEYS[2], entry)) then return 0 end
  length = length or redis.call('LLEN', KEYS[2])
  if length + #tail >= longest then return nil, length + #tail end
  local sequence = next_number()
  tail[#tail + 1] = {entry}
  if aside then
    return sequence
  elseif door == ALL then
    door = PASSING
  elseif not passing then
    door = NOBODY
  end
  return sequence
end

local reclaimed = false
local function reclaim_once()
  if reclaimed then return end
  reclaimed = true
  add(reclaim(function(client)
    for _, entry in ipairs(of_unresponsive(client)) do remove(entry) end
  end))
end

-- Ends what an owner has but for some permits, and reports whether it had any.
local function disown(client, number, keep)
  local record = holding(client, number)
  if not record then return false end
  if keep < record.n then -- or it is a late copy of a partial release
    add(record.n - keep)
    change(record, keep)
  end
  return true
end

-- Writes all that was changed, then tells whom it concerns.
local function commit()
  -- Giving back is not refused when memory is short: this command is not, nor is what follows.
  if given then redis.call('PEXPIRE', KEYS[2], QUEUE_KEPT) end
  if last then redis.call('SET', KEYS[3], decimal(last), 'PX', DAY) end
  local freed = write()
  if found then
    local change = freed and freed + bonus or free - found
    if change ~= 0 then free = redis.call('INCRBY', KEYS[1], decimal(change)) end
  elseif free then
    redis.call('SET', KEYS[1], decimal(free))
  end
  local popped = 0
  while popped < #list and list[popped + 1].gone do popped = popped + 1 end
  if popped > 0 then redis.call('LTRIM', KEYS[2], popped, -1) end
  for i = popped + 1, #list do
    if list[i].gone then redis.call('LREM', KEYS[2], 1, list[i][1]) end
  end
  for entry in pairs(removals) do redis.call('LREM', KEYS[2], 1, entry) end
  local push = {}
  for _, place in ipairs(tail) do
    if not place.gone then push[#push + 1] = place[1] end
  end
  many('RPUSH', KEYS[2], push)
  if joined then redis.call('PEXPIRE', KEYS[2], QUEUE_KEPT) end
  for _, m in ipairs(messages) do
    if m[2] == 'grant' then
      tell_grant(m[1], KIND, m[3], m[4], 0, 0, now, m[5])
    else
      tell(m[1], m[2], m[3])
    end
  end
  if briefest < SHORT then tell_next(briefest) end
  if given and free and free > 0 then redis.call(ARGV[3], KEYS[4], free) end -- Redisson's waiters try again
end

-- For leave.lua: ends what these ids hold, and grants what that makes free.
local function give_back(ids)
  prefetch(ids)
  for _, id in ipairs(ids) do
    local client, number = string.match(id, '^([^:]+):(%d+)$')
    disown(client, number, 0)
  end
  pcall(grant) -- foreign data under the name of a companion does not keep permits from being given back
  commit()
end
