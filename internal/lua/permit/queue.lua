-- queue: the queue of a semaphore in a transaction, and how it is served. This is the body of open_queue in
-- permit/transaction.lua.
-- include shared/queue.lua

-- One script does so much at most. After MOST grants or DROPS dropped entries, its replies say to ask again
-- at once. LOOKS is how many entries it looks at behind one that does not fit, for those that may pass it.
-- ASIDES is how many entries may wait aside.
local MOST, LOOKS, ASIDES = 1000, 100, 100

-- list is what was read of the queue in Redis; more: there may be more of it. tail is what joins behind it. A
-- place is {entry, gone}; gone: the entry is to be removed, or was granted.
local list, more, tail = {}, true, {}
local removals = {} -- entries to remove wherever they stand in what was not read
local first = 1     -- all places before this one are gone
local chunk = FEW -- how many entries are read next
local joined, length = false, nil
local briefest = SHORT -- ms: the shortest lease of those who join, or that began while somebody waited
local messages, told = {}, {}

-- Reads the entry of a place, and returns its owner. nil: no version of ours wrote it, or a number is too
-- great, and the entry is dropped.
local function parse(place)
  local owner, client, number, lease, n, flags, turns =
    string.match(place[1], '^1:(([^:]+):(%d+)):(%d+):(%d+)(%a*)(%d*)$')
  if owner and #number <= 20 and #lease <= 10 and #n <= 10 and #turns <= 4 and tonumber(n) > 0 then
    place.owner, place.client, place.number, place.lease, place.n, place.flags, place.turns =
      owner, client, number, lease, n, flags, tonumber(turns)
  end
  return place.owner
end

local function place_at(i)
  if more and moving and moving.lacks(QUEUE) then more = false end
  while more and i > #list do
    local got = redis.call('LRANGE', QUEUE, #list, #list + chunk - 1)
    local owners = {}
    for _, entry in ipairs(got) do
      local place = {entry, removals[entry]}
      owners[#owners + 1] = parse(place)
      list[#list + 1] = place
    end
    if not moving then prefetch(owners) end -- else a record of another owner may be on the other side
    more = #got == chunk
    chunk = math.min(2 * chunk, MANY)
  end
  return list[i] or tail[i - #list]
end

local function find(entry)
  for i = first, #list do
    if list[i][1] == entry and not list[i][2] then return list[i] end
  end
  for _, place in ipairs(tail) do
    if place[1] == entry and not place[2] then return place end
  end
  return nil
end

-- Removes an entry wherever it stands: a late copy of a first request may have queued it again.
local function remove(entry)
  for i = first, #list do
    if list[i][1] == entry then list[i][2] = true end
  end
  for _, place in ipairs(tail) do
    if place[1] == entry then place[2] = true end
  end
  if more then removals[entry] = true end
end

-- Makes all waiters of a client ask again, once the changes are written.
local function ask(client, number)
  if not told[client] then
    told[client] = true
    messages[#messages + 1] = {client, 'a', number}
  end
end

-- Who may take free permits although somebody waits: everybody, those with flag p, nobody. serve finds that
-- out.
local ALL, PASSING, NOBODY = 1, 2, 3
local door = ALL

-- Grants free permits to those who wait, the first first, as long as they fit.
--
-- The first entry that does not fit holds up all others. Those with flag p may pass it, up to the next entry
-- without that flag. An entry is dropped when its client is gone, or its owner was granted permits before. It
-- is dropped too when it asks for more permits than there are, and a message tells its client to ask again.
-- But with flag g, such an entry waits aside and holds up nobody; so may ASIDES entries.
--
-- self is the caller's own entry, which needs no message. Returns the record of self if that was granted.
--
-- With stuck free permits, or fewer, nothing can be granted. With looks it goes on all the same up to the
-- first entry that has to wait, since one before it may ask for more permits than there are. unfinished: it
-- stopped before the end. asides is how many entries wait aside.
local stuck, unfinished, asides = 0, false, 0
local function serve(self, looks)
  if not free or free <= stuck and not looks then return nil end
  local at, grants, drops, held_up, mine = first, 0, 0, nil, nil
  asides = 0
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
    if free < 1 and (held_up or not looks) or held_up and at - held_up > LOOKS then break end
    if not place[2] then
      if not place.owner then parse(place) end
      local entry, owner, client, flags, n =
        place[1], place.owner, place.client, place.flags, tonumber(place.n)
      local aside, passes = false, false
      if n and flags ~= '' then
        passes = string.find(flags, 'p', 1, true)
        aside = string.find(flags, 'g', 1, true) and n > capacity()
      end
      if held_up and not aside and not passes then break end
      if not n or entry ~= self and not alive(client) or holding(owner) then
        place[2] = true
        drops = drops + 1
      elseif n <= free then
        local lease = tonumber(place.lease)
        if entry == self then
          mine = take(owner, n, lease, false, place.turns)
        else
          local short = lease > SHORT and SHORT or lease
          local record = take(owner, n, short, true, place.turns)
          messages[#messages + 1] =
            {client, 'grant', place.number, record.token, short, record.reserved or 0, place.turns}
        end
        if lease < briefest then briefest = lease end
        place[2] = true
        free = free - n
        grants = grants + 1
      elseif aside and asides < ASIDES then
        asides = asides + 1
      elseif n <= capacity() then
        held_up = held_up or at
      else
        place[2] = true
        drops = drops + 1
        ask(client, place.number)
      end
    end
    if at == first and place[2] then first = first + 1 end
    at = at + 1
  end
  stuck = free > 0 and free or 0
  return mine
end

-- Whether other clients wait as well, as far as both ends of the queue say: 1 or 0. A client that knows of
-- them passes nothing on inside, unless its user gave it a budget. The last in the queue may be that of
-- another client, which does not know yet. It is told when it is to pass something on, or is alone.
local NEXT = 8 -- so many of the first are looked at
local others, said
local function look_around()
  others = 0
  local own = '1:' .. string.match(ARGV[1], '^[^:]+:')
  local last = list[length]
  if length == 0 or last and last[2] then return end
  last = last and last[1] or redis.call('LRANGE', QUEUE, -1, -1)[1]
  if string.sub(last, 1, #own) ~= own then
    others = 1
    local client, number, flags = string.match(last, '^1:([^:]+):(%d+):%d+:%d+(%a*)')
    if client and (length == 1 or string.find(flags, 't', 1, true)) then
      messages[#messages + 1] = {client, 'w', number}
    end
  elseif length > 1 then
    for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, NEXT - 1)) do
      if string.sub(entry, 1, #own) ~= own then others = 1 end
    end
  end
end

-- Whether one of the next in the queue is not this client's, which is granted something: 1 or 0.
local function others_than(client)
  -- redisson if redisson_waits() then return 1 end
  local prefix, looked = '1:' .. client .. ':', 0
  for i = first, #list + #tail do
    local place = list[i] or tail[i - #list]
    if not place[2] then
      if string.sub(place[1], 1, #prefix) ~= prefix then return 1 end
      looked = looked + 1
      if looked == NEXT then break end
    end
  end
  return 0
end

-- Queues an entry unless it is queued. Returns its sequence, and whether others wait; 0 when it was queued
-- before; nil and the length when the queue is full, or too many wait aside.
local function join(entry, lease, fresh, longest, aside, passing)
  joined = true
  if lease < briefest then briefest = lease end
  length = length or moving and moving.lacks(QUEUE) and 0 or redis.call('LLEN', QUEUE)
  if not others then look_around() end
  -- redisson if redisson_waits() then others = 1 end
  if not fresh and (find(entry) or more and not removals[entry] and redis.call('LPOS', QUEUE, entry)) then
    -- It was said when the entry was queued. The message that said it since may be lost.
    if others == 1 and not said then
      said = true
      messages[#messages + 1] = {string.match(ARGV[1], '^[^:]+'), 'w', string.match(entry, '^1:[^:]+:(%d+)')}
    end
    return 0
  end
  if length + #tail >= longest or aside and asides >= ASIDES then return nil, length + #tail end
  local sequence = next_number()
  tail[#tail + 1] = {entry}
  stuck = math.min(stuck, math.max(free or 0, 0)) -- with more free permits than now it may be granted
  if aside then
    return sequence, others
  elseif door == ALL then
    door = PASSING
  elseif not passing then
    door = NOBODY
  end
  return sequence, others
end

local reclaimed, unanswered = false, false
local function reclaim_once()
  if reclaimed then return end
  reclaimed = true
  local clients = {}
  local freed, rest = reclaim(function(client) clients[client] = true end)
  if next(clients) then
    unanswered = true
    for _, entry in ipairs(of_unresponsive(clients)) do remove(entry) end
  end
  add(freed)
  unfinished = rest
end

-- Writes the changes of the queue, and sends the messages.
local function commit_queue()
  local function push()
    local new = {}
    for _, place in ipairs(tail) do
      if not place[2] then new[#new + 1] = place[1] end
    end
    many('RPUSH', QUEUE, new)
    if joined then redis.call('PEXPIRE', QUEUE, QUEUE_KEPT) end
  end
  if moving then push() end -- before the last other entry goes, and with it the key
  local popped = 0
  while popped < #list and list[popped + 1][2] do popped = popped + 1 end
  if popped > 0 then redis.call('LTRIM', QUEUE, popped, -1) end
  for i = popped + 1, #list do
    if list[i][2] then redis.call('LREM', QUEUE, 1, list[i][1]) end
  end
  for entry in pairs(removals) do redis.pcall('LREM', QUEUE, 0, entry) end
  if not moving then push() end
  local clock, wait = decimal(now), {}
  for _, m in ipairs(messages) do
    if m[2] == 'grant' then
      local client = m[1]
      -- Who has nothing to pass on need not know.
      if m[7] and not wait[client] then wait[client] = others_than(client) end
      tell_grant(client, KIND, m[3], m[4], m[6], m[7] and wait[client] or 0, clock, m[5])
    else
      tell(m[1], m[2], m[3])
    end
  end
  note_lease(briefest)
  if unanswered then
    -- inline shared/call.lua
  end
end

queue = {
  grant = serve, join = join, remove = remove, reclaim = reclaim_once, commit = commit_queue, ask = ask,
  -- Whether a request that is not queued, or that serve has just looked at, may take free permits now.
  may_take = function(passing) return door == ALL or door == PASSING and passing end,
  began = function(lease) if lease < briefest then briefest = lease end end,
  first_end = function() return unfinished and 0 or ask_in(first_end()) end,
  expect = function(n) chunk = math.max(chunk, n) end,
  look = place_at, messages = messages, tell = tell,
}
