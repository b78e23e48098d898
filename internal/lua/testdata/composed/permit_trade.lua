--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local free = #ARGV < 9 and not moving
  and (SLOTS and redis.pcall('EXISTS', NAME, QUEUE) == 1 or not SLOTS and redis.call('EXISTS', QUEUE) == 0)
  and redis.call('GET', NAME)
if free and #free <= 9 and (free == '0' or string.find(free, '^[1-9]%d*$')) then
  local id, mode, n, answered, late = ARGV[1], ARGV[5], ARGV[3], ARGV[4], false
  if mode then
    n, answered = ARGV[4], ARGV[6] or ''
    if #mode > 5 then
      local now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
      late = now > string.sub(mode, 5)
    end
  end
  if not late and (n == '1' or #n <= 9 and string.find(n, '^[1-9]%d*$')) and (not mode or free - n >= 0) then
local DONE = 'latchkey_done:{' .. NAME .. '}'
    local prefix = DONE .. ':'
    if not mode or redis.call('SET', prefix .. id, n, 'PX', '600000', 'NX') then
      if not answered then
        redis.pcall('PEXPIRE', QUEUE, '60000')
      elseif answered ~= '' then
        local client = prefix .. string.sub(id, 1, (string.find(id, ':', 1, true)))
        if string.find(answered, ' ', 1, true) == #answered then
          redis.call('DEL', client .. string.sub(answered, 1, -2))
        else
          local gone = {}
          for number in string.gmatch(answered, '%d+') do gone[#gone + 1] = client .. number end
          redis.call('DEL', unpack(gone))
        end
      end
      if mode then
        redis.call('DECRBY', NAME, n)
        return {1}
      elseif redis.call('SET', prefix .. id, n, 'PX', '600000', 'NX') then
local CHANNEL = 'redisson_sc:{' .. NAME .. '}'
        redis.pcall(VERB, CHANNEL, redis.call('INCRBY', NAME, n)) -- Redisson's waiters try again
        return {1}
      end
    end
  end
end
local ARGV = #ARGV >= 9 and ARGV or ARGV[5]
  and {ARGV[1], ARGV[2], ARGV[7] or '100000', ARGV[6] or '', 'take', ARGV[1], ARGV[3], ARGV[5], ARGV[4]}
  or {ARGV[1], ARGV[2], '0', ARGV[4] or '', 'put', ARGV[1], ARGV[3], '', ''}
local TOKEN = 'latchkey_token:{' .. NAME .. '}'
local CHANNEL = 'redisson_sc:{' .. NAME .. '}'
local DONE = 'latchkey_done:{' .. NAME .. '}'
local TIMEOUTS = nil
local HOLDERS = nil
local function decimal(number) return string.format('%.0f', number) end
local function token_after(now, last, floor, reserved, lean)
  local number = tonumber(now)
  floor = tonumber(floor) or 0
  if last then
    local before = tonumber(last)
    if not (before and before > 0 and before < 9007199254730000) then
      redis.call('SET', TOKEN, last, 'KEEPTTL')
      error('WRONGTYPE ' .. TOKEN .. ' holds no fencing token')
    end
    if before > floor then floor = before end
  end
  if floor >= number then
    local ahead = 5000
    if floor > number + 2 * ahead then
      reserved = math.min(reserved, lean or 100)
    else
      reserved = math.max(0, math.min(reserved, number + ahead - floor - 1))
    end
    number = floor + 1
    redis.call('SET', TOKEN, decimal(number + reserved), 'KEEPTTL')
  end
  redis.call('PEXPIRE', TOKEN, (last or number > tonumber(now)) and '86400000' or '3600000')
  return decimal(number), reserved
end
local AHEAD = 5000
local DAY, HOUR = '86400000', '3600000'
local function clock()
  local now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
  return now
end
local function next_token(now, block, lean)
  local floor = ARGV[2]
  if block and block > 0 then
    local reserved = math.min(block, AHEAD)
    local last = redis.call('SET', TOKEN, decimal(now + reserved), 'KEEPTTL', 'GET')
    return token_after(now, last, floor, reserved, lean)
  end
  local last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
local newest = last and last < now and floor < now and #last == 16 and last > '1'
  and string.byte(last, 7) == string.byte(now, 7)
  if newest then return now, 0 end
  return token_after(now, last, floor, 0, lean)
end
local now = tonumber(clock())
local function many(command, key, list)
  local sum = 0
  for i = 1, #list, 1000 do
    sum = sum + redis.call(command, key, unpack(list, i, math.min(i + 999, #list)))
  end
  return sum
end
local last, known
local function next_number()
  if not last then
    local before = tonumber(redis.call('GET', TOKEN) or '0')
    if not (before and before >= 0 and before < 9007199254730000) then
      error('WRONGTYPE ' .. TOKEN .. ' holds no fencing token')
    end
    last, known = math.max(before, tonumber(ARGV[2])), before > 0
  end
  last = math.max(last + 1, now)
  return last
end
local function reserve(n)
  local more = math.max(0, math.min(n, now + AHEAD - last))
  last = last + more
  return more
end
local undeclared, demand
if KEYS[2] then
  local named = {}
  for _, key in ipairs(KEYS) do named[key] = true end
  undeclared = function(key) return not named[key] end
  demand = function(ends)
    return 'LATCHKEY_UNDECLARED ' .. table.concat(ends, ' ', 1, math.min(#ends, 1000)) .. ' .'
  end
end
local KIND = 'c'
local COUNTS_HELD = false -- nobody knows how many permits are out
local REMEMBERED = '600000' -- ms
local records, changed = {}, {} -- by owner id
local answered = {}
local function acknowledge(client, numbers)
  for number in string.gmatch(numbers, '%d+') do
    answered[#answered + 1] = DONE .. ':' .. client .. ':' .. number
  end
end
local unnamed -- an error: nothing may be written
local function prefetch(owners)
  if unnamed then error(unnamed) end -- a caller has caught it
  local names, keys, wanted = {}, {}, {}
  for i = 1, #owners do
    if records[owners[i]] == nil then
      names[#names + 1], keys[#keys + 1] = owners[i], DONE .. ':' .. owners[i]
      if undeclared and undeclared(keys[#keys]) then wanted[#wanted + 1] = owners[i] end
    end
  end
  if #names == 0 then return end
  if wanted[1] then
    unnamed = demand(wanted)
    error(unnamed)
  end
  local done
  if moving then
    done = {}
    for i = 1, #keys do
      moving.need(keys[i])
      done[i] = redis.call('GET', keys[i])
    end
  else
    done = redis.call('MGET', unpack(keys))
  end
  for i = 1, #names do
    local text = done[i] or '0'
    if #text > 10 or not string.find(text, '^%d+$') then
      error('WRONGTYPE ' .. keys[i] .. ' does not say what was taken or given')
    end
    local n = done[i] and tonumber(text)
    records[names[i]] = n and {owner = names[i], was = n, n = n, token = '1'} or false
  end
end
local function foresee(look)
  if undeclared and pcall(look, 1) == false and unnamed then error(unnamed) end
end
local FEW, MANY, DROPS = 2, 500, 20000
if undeclared then FEW, MANY, DROPS = 1000, 1000, 10000 end
local function holding(owner)
  if records[owner] == nil then prefetch({owner}) end
  local record = records[owner]
  return record and record.n > 0 and record or nil
end
local function change(record, n)
  record.n = n
  changed[record.owner] = record
end
local function take(owner, n)
  local record = {owner = owner, was = 0, n = 0, token = '1'}
  records[owner] = record
  change(record, n)
  return record
end
local function extend() return true end
local function reclaim() return 0, false end
local function first_end() return -1 end
local function out() return math.huge end
local function write()
  if unnamed then error(unnamed) end
  local gone = answered
  for owner, record in pairs(changed) do
    if record.n > 0 then
      redis.call('SET', DONE .. ':' .. owner, record.n, 'PX', REMEMBERED)
    elseif record.was > 0 then
      gone[#gone + 1] = DONE .. ':' .. owner
    end
  end
  for i = 1, moving and #gone or 0 do redis.pcall('DEL', gone[i]) end -- those on the other side expire
  if #gone > 0 and not moving then redis.call('DEL', unpack(gone)) end
  return nil
end
local function ready()
  if not moving then return end
  moving.need(TOKEN)
  if HOLDERS then
    moving.need(TIMEOUTS)
    moving.need(HOLDERS)
  end
end
local function queued()
  if moving then return not moving.lacks(QUEUE) end
  return redis.call('EXISTS', QUEUE) == 1
end
local free = redis.call('GET', NAME)
if free and not (#free <= 11 and string.find(free, '^-?%d+$')) then
  error('WRONGTYPE ' .. NAME .. ' holds data that is not a semaphore')
end
free = free and tonumber(free) or nil
local found = free   -- the free permits in Redis
local bonus = 0      -- by how much capacity.lua changes their number
local given = false  -- somebody gave permits back
local queue          -- see open_queue; nil while nobody waits, as far as is known
local function add(n)
  if free then free = free + n end
  given = given or n > 0
end
local function capacity() return (free or 0) + out() end
local function disown(owner, keep)
  local record = holding(owner)
  if not record then return false end
  if keep < record.n then -- or it is a late copy of a partial release
    add(record.n - keep)
    change(record, keep)
  end
  return true
end
local function commit()
  if given then redis.pcall('PEXPIRE', QUEUE, '60000') end
  if last then redis.call('SET', TOKEN, decimal(last), 'PX', known and DAY or HOUR) end
  local freed = write()
  if found then
    local change = freed and freed + bonus or free - found
    if change ~= 0 then free = redis.call('INCRBY', NAME, decimal(change)) end
  elseif free then
    redis.call('SET', NAME, decimal(free))
  end
  if queue then queue.commit() end
  if given and free and free > 0 then redis.pcall(VERB, CHANNEL, free) end
end
local function open_queue()
  if queue then return queue end
local INBOX = 'latchkey_inbox:'
local SHORT = 2000
local OUTLIVES = 1000
local QUEUE_KEPT = '60000'
local counted = {}
local function alive(client)
  if counted[client] == nil then
    local reply = redis.pcall('PUBSUB', NUMSUB, INBOX .. client)
    counted[client] = reply.err ~= nil or reply[2] > 0
  end
  return counted[client]
end
local function tell(client, kind, text)
  return redis.pcall(VERB, INBOX .. client, '1 ' .. kind .. ' ' .. text .. ' ' .. NAME)
end
local function tell_grant(client, kind, number, text, reserved, others, now, short)
  tell(client, kind, number .. ' ' .. text .. ' ' .. reserved .. ' ' .. others .. ' ' .. now .. ' ' .. short)
end
local PACE = 'latchkey_pace:{' .. NAME .. '}'
local LISTENERS = 1000
local function tell_waiting(kind, more, asker)
  local told, own = {}, asker and string.match(asker, '^[^:]+')
  if moving and moving.lacks(QUEUE) then return told end
  for _, entry in ipairs(redis.pcall('LRANGE', QUEUE, 0, LISTENERS - 1)) do -- nobody waits in foreign data
    local client, number = string.match(entry, '^1:([^:]+):(%d+):')
    if client and client ~= own and not told[client] then
      told[client] = entry
      tell(client, kind, number .. more)
    end
  end
  return told
end
local function note_lease(lease, asker)
  if tonumber(lease) >= SHORT then return end
  local before = redis.pcall('GET', PACE)
  before = type(before) == 'string' and tonumber(before)
  if before and before <= tonumber(lease) then
    if before == tonumber(lease) then redis.pcall('PEXPIRE', PACE, QUEUE_KEPT) end
    return
  end
  if SLOTS and type(redis.pcall('EXISTS', NAME, PACE)) ~= 'number' then return end
  redis.pcall('SET', PACE, lease, 'PX', QUEUE_KEPT)
  tell_waiting('l', ' ' .. lease, asker)
end
local function ask_in(ms)
  local pace = redis.pcall('GET', PACE)
  pace = type(pace) == 'string' and tonumber(pace)
  if pace and (ms < 0 or pace < ms) then return math.max(pace, 10) end -- no lease is shorter than 10 ms
  return ms
end
local CALLED = 'latchkey_called:{' .. NAME .. '}'
local answering = false
local function of_unresponsive(clients)
  local found, called, own = {}, {}, string.match(ARGV[1], '^[^:]+')
  if moving and moving.lacks(QUEUE) then return found end
  local left = redis.pcall('PTTL', CALLED)
  answering = type(left) == 'number' and QUEUE_KEPT - left < 1000
  local list = answering and {} or redis.pcall('HGETALL', CALLED) -- foreign data says nothing
  for i = 1, #list, 2 do called[list[i]] = list[i + 1] end
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, -1)) do
    local client = string.match(entry, '^1:([^:]+):')
    if client and client ~= own then
      if called[client] == entry then clients[client] = true end -- its others stand behind this one
      if clients[client] then found[#found + 1] = entry end
    end
  end
  return found
end
local MOST, LOOKS, ASIDES = 1000, 100, 100
local list, more, tail = {}, true, {}
local removals = {} -- entries to remove wherever they stand in what was not read
local first = 1     -- all places before this one are gone
local chunk = FEW -- how many entries are read next
local joined, length = false, nil
local briefest = SHORT -- ms: the shortest lease of those who join, or that began while somebody waited
local messages, told = {}, {}
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
local function remove(entry)
  for i = first, #list do
    if list[i][1] == entry then list[i][2] = true end
  end
  for _, place in ipairs(tail) do
    if place[1] == entry then place[2] = true end
  end
  if more then removals[entry] = true end
end
local function ask(client, number)
  if not told[client] then
    told[client] = true
    messages[#messages + 1] = {client, 'a', number}
  end
end
local ALL, PASSING, NOBODY = 1, 2, 3
local door = ALL
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
local function others_than(client)
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
local function join(entry, lease, fresh, longest, aside, passing)
  joined = true
  if lease < briefest then briefest = lease end
  length = length or moving and moving.lacks(QUEUE) and 0 or redis.call('LLEN', QUEUE)
  if not others then look_around() end
  if not fresh and (find(entry) or more and not removals[entry] and redis.call('LPOS', QUEUE, entry)) then
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
      if m[7] and not wait[client] then wait[client] = others_than(client) end
      tell_grant(client, KIND, m[3], m[4], m[6], m[7] and wait[client] or 0, clock, m[5])
    else
      tell(m[1], m[2], m[3])
    end
  end
  note_lease(briefest)
  if unanswered then
if not answering and (not SLOTS or type(redis.pcall('EXISTS', NAME, CALLED)) == 'number') then
  redis.pcall('DEL', CALLED)
  for client, entry in pairs(tell_waiting('a', '', ARGV[1])) do redis.pcall('HSET', CALLED, client, entry) end
  redis.pcall('PEXPIRE', CALLED, QUEUE_KEPT)
end
  end
end
queue = {
  grant = serve, join = join, remove = remove, reclaim = reclaim_once, commit = commit_queue, ask = ask,
  may_take = function(passing) return door == ALL or door == PASSING and passing end,
  began = function(lease) if lease < briefest then briefest = lease end end,
  first_end = function() return unfinished and 0 or ask_in(first_end()) end,
  expect = function(n) chunk = math.max(chunk, n) end,
  look = place_at, messages = messages, tell = tell,
}
  return queue
end
local function grant()
  if queue or queued() then open_queue().grant() end
end
local function give_back(ids)
  ready()
  prefetch(ids)
  if queued() then foresee(open_queue().look) end
  for _, id in ipairs(ids) do disown(id, 0) end
  pcall(grant) -- foreign data under a companion's name must not keep permits from being given back
  commit()
end
local function parse_mode(text)
  if string.sub(text, 1, 3) ~= 'try' then return string.sub(text, 1, 5), false end
  if text == 'try' then return text, false end
  return 'try', clock() > string.sub(text, 5)
end
ready()
local replies, ends = {}, {}
local longest = tonumber(ARGV[3])
acknowledge(string.match(ARGV[1], '^[^:]+'), ARGV[4])
local owners, gives = {}, 0
for i = 5, #ARGV, 5 do
  owners[#owners + 1] = ARGV[i + 1]
  if ARGV[i] ~= 'take' then
    gives = gives + 1
    if ARGV[i] == 'give' and ARGV[i + 2] ~= '' then redis.pcall('LREM', QUEUE, 0, ARGV[i + 2]) end
  end
end
prefetch(owners)
if queued() then
  open_queue().expect(gives + 1)
  if gives > 0 then foresee(queue.look) end
end
local function reply_to(record, flags)
  if string.find(flags, 'd', 1, true) then return {0, tonumber(record.token), record.n, 0} end
  if (record.reserved or 0) > 0 then return {0, tonumber(record.token), record.reserved, 0} end
  return tonumber(record.token)
end
local function contend(owner, lease, mode, demand, n, flags, turns)
  local line = open_queue()
  if mode == 'again' then
local CALLED = 'latchkey_called:{' .. NAME .. '}'
if redis.pcall('EXISTS', CALLED) == 1 then redis.pcall('HDEL', CALLED, (string.match(ARGV[1], '^[^:]+'))) end
  end
  line.reclaim()
  local entry = '1:' .. owner .. ':' .. lease .. ':' .. demand
  local record = line.grant(entry, COUNTS_HELD and mode == 'again')
  if record then return reply_to(record, flags) end
  local drains, passes, patient = false, false, false
  if flags ~= '' then
    drains = string.find(flags, 'd', 1, true)
    passes = string.find(flags, 'p', 1, true)
    patient = string.find(flags, 'g', 1, true)
  end
  if drains then n = math.max(1, math.min(free or 0, 1000)) end
  if free and free >= n and (drains or line.may_take(passes)) then
    if mode ~= 'first' then line.remove(entry) end
    line.began(lease)
    free = free - n
    return reply_to(take(owner, n, lease, false, turns), flags)
  end
  local never, reply = free and n > capacity(), nil
  if not free and not string.find(flags, 'u', 1, true) then
    reply = {-4, 0, now}
  elseif never and not patient and not drains then
    reply = {-5, capacity(), now}
  elseif mode == 'try' then
    reply = {-1, 0, now}
    ends[#ends + 1] = reply
    return reply
  end
  if reply then
    if mode ~= 'first' then line.remove(entry) end
    return reply
  end
  if moving and not moving.has(QUEUE) then
    return {-7, 0, now}
  end
  local sequence, others = line.join(entry, lease, mode == 'first', longest, never, passes)
  if not sequence then return {-2, others, now} end -- the length
  reply = {sequence, 0, now}
  if others == 1 then reply[4] = 1 end
  ends[#ends + 1] = reply
  return reply
end
for i = 5, #ARGV, 5 do
  local kind, owner = ARGV[i], ARGV[i + 1]
  local reply
  if kind == 'take' then
    local lease, demand = tonumber(ARGV[i + 2]), ARGV[i + 4]
    local mode, late = parse_mode(ARGV[i + 3])
    local n, flags, turns = string.match(demand, '^(%d+)(%a*)(%d*)$')
    n, turns = tonumber(n), tonumber(turns)
    local record = holding(owner)
    if late then
      reply = {-6, 0, now}
    elseif record and extend(record, lease) then
      reply = reply_to(record, flags)
    elseif not record and not queue and (flags == '' or flags == 't') and free and free >= n then
      free = free - n
      reply = reply_to(take(owner, n, lease, false, turns), flags)
    else
      reply = contend(owner, lease, mode, demand, n, flags, turns)
    end
  elseif kind == 'give' then
    reply = disown(owner, tonumber(ARGV[i + 3])) and 1 or 0
    if queue then pcall(queue.grant) end
  elseif holding(owner) then
    reply = 1
  elseif not free then
    reply = -4
  elseif free + ARGV[i + 2] > 2147483647 then
    reply = -6
  else
    local n = tonumber(ARGV[i + 2])
    take(owner, n)
    add(n)
    reply = 1
    if queue then pcall(queue.grant) end
  end
  replies[#replies + 1] = reply
end
commit()
if #ends > 0 then
  local first = queue.first_end()
  for _, reply in ipairs(ends) do reply[2] = first end
end
return replies
-- the same for names of another kind
--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local owner = #ARGV < 9 and not moving
  and (SLOTS and redis.pcall('EXISTS', NAME, QUEUE) == 1 or not SLOTS and redis.call('EXISTS', QUEUE) == 0) and ARGV[1]
local free = owner and redis.call('GET', NAME)
if free and #free <= 11 then
local TIMEOUTS = '{' .. NAME .. '}:timeout'
local HOLDERS = 'latchkey_holders:{' .. NAME .. '}'
  local prefix
local colon = string.find(owner, ':', 1, true)
local number = string.sub(owner, colon + 1, #owner > colon + 9 and -10 or -1)
local fourth = number % 256
local high = (number - fourth) / 256
local third = high % 256
high = (high - third) / 256
local second = high % 256
prefix = (colon > 10 and string.sub(owner, colon - 10, colon - 1)
  or string.sub('..........' .. string.sub(owner, 1, colon - 1), -10))
  .. string.char((high - second) / 256 % 256, second, third, fourth)
  local demand, now = ARGV[4], nil
  if not demand then
    local known = free == '0' or string.find(free, '^-?[1-9]%d*$')
    local held = known and redis.call('HGET', HOLDERS, prefix) or ''
    local n, a, b, c, d = string.match(held, '^([1-9]%d?%d?):()%d+():[01]:()%d+():[^:]+:%d+$')
    if n and b - a <= 16 and d - c <= 10 then
      redis.call('HDEL', HOLDERS, prefix) -- Redis never refuses it for lack of memory, nor what follows
      local gone
      if n == '1' then
        gone = redis.call('ZREM', TIMEOUTS, prefix .. '\0\0')
      else
local function base(owner)
  local prefix
local colon = string.find(owner, ':', 1, true)
local number = string.sub(owner, colon + 1, #owner > colon + 9 and -10 or -1)
local fourth = number % 256
local high = (number - fourth) / 256
local third = high % 256
high = (high - third) / 256
local second = high % 256
prefix = (colon > 10 and string.sub(owner, colon - 10, colon - 1)
  or string.sub('..........' .. string.sub(owner, 1, colon - 1), -10))
  .. string.char((high - second) / 256 % 256, second, third, fourth)
  return prefix
end
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
local function parse_holder(text)
  local n, token, short, lease, owner = string.match(text or '', '^(%d+):(%d+):([01]):(%d+):([^:]+:%d+)$')
  if not n or #n > 4 or #token > 16 or #lease > 10
    or tonumber(n) == 0 or tonumber(n) > 1000 then return nil end
  return tonumber(n), token, short, owner, lease
end
local HOLDERS_KEPT = '172800000' -- two days, in ms: longer than any lease
        local permits = {}
        append_permits(permits, prefix, 0, tonumber(n))
        gone = redis.call('ZREM', TIMEOUTS, unpack(permits))
      end
      free = gone == 1 and redis.call('INCR', NAME) or redis.call('INCRBY', NAME, gone)
      if free > 0 then
local CHANNEL = 'redisson_sc:{' .. NAME .. '}'
        redis.pcall(VERB, CHANNEL, free)
      end
      return {1}
    end
  elseif string.find(free, '^[1-9]%d*$')
    and (demand == '1' or #demand <= 3 and string.find(demand, '^[1-9]%d*$') and free - demand >= 0) then
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
    if not ARGV[5] or #ARGV[5] <= 5 or now <= string.sub(ARGV[5], 5) then
local TOKEN = 'latchkey_token:{' .. NAME .. '}'
      local floor = ARGV[2]
      local last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
local newest = last and last < now and floor < now and #last == 16 and last > '1'
  and string.byte(last, 7) == string.byte(now, 7)
      local token = now
      if not newest then
local function decimal(number) return string.format('%.0f', number) end
local function token_after(now, last, floor, reserved, lean)
  local number = tonumber(now)
  floor = tonumber(floor) or 0
  if last then
    local before = tonumber(last)
    if not (before and before > 0 and before < 9007199254730000) then
      redis.call('SET', TOKEN, last, 'KEEPTTL')
      error('WRONGTYPE ' .. TOKEN .. ' holds no fencing token')
    end
    if before > floor then floor = before end
  end
  if floor >= number then
    local ahead = 5000
    if floor > number + 2 * ahead then
      reserved = math.min(reserved, lean or 100)
    else
      reserved = math.max(0, math.min(reserved, number + ahead - floor - 1))
    end
    number = floor + 1
    redis.call('SET', TOKEN, decimal(number + reserved), 'KEEPTTL')
  end
  redis.call('PEXPIRE', TOKEN, (last or number > tonumber(now)) and '86400000' or '3600000')
  return decimal(number), reserved
end
        token = token_after(now, last, floor, 0)
      end
      local holder = demand .. ':' .. token .. ':0:' .. ARGV[3] .. ':' .. owner
      if redis.call('HSETNX', HOLDERS, prefix, holder) == 1 then
        local score = string.format('%d', string.sub(now, 1, 13) + 1 + ARGV[3])
        local added
        if demand == '1' then
          added = redis.pcall('ZADD', TIMEOUTS, score, prefix .. '\0\0')
        else
local function base(owner)
  local prefix
local colon = string.find(owner, ':', 1, true)
local number = string.sub(owner, colon + 1, #owner > colon + 9 and -10 or -1)
local fourth = number % 256
local high = (number - fourth) / 256
local third = high % 256
high = (high - third) / 256
local second = high % 256
prefix = (colon > 10 and string.sub(owner, colon - 10, colon - 1)
  or string.sub('..........' .. string.sub(owner, 1, colon - 1), -10))
  .. string.char((high - second) / 256 % 256, second, third, fourth)
  return prefix
end
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
local function parse_holder(text)
  local n, token, short, lease, owner = string.match(text or '', '^(%d+):(%d+):([01]):(%d+):([^:]+:%d+)$')
  if not n or #n > 4 or #token > 16 or #lease > 10
    or tonumber(n) == 0 or tonumber(n) > 1000 then return nil end
  return tonumber(n), token, short, owner, lease
end
local HOLDERS_KEPT = '172800000' -- two days, in ms: longer than any lease
          local permits = {}
          append_permits(permits, prefix, 0, tonumber(demand), score)
          added = redis.pcall('ZADD', TIMEOUTS, unpack(permits))
        end
        if type(added) ~= 'number' then -- foreign data under that name
          redis.call('HDEL', HOLDERS, prefix)
          error(added.err)
        end
        redis.call('PEXPIRE', HOLDERS, '172800000') -- two days, as in permit/holder.lua
        local ttl = redis.call('PTTL', NAME)
        if ttl > 0 and ttl < 43200000 then -- as write of permit/leased.lua
local DONE = 'latchkey_done:{' .. NAME .. '}'
          if redis.call('EXISTS', DONE .. ':stated') == 0 then redis.call('PEXPIRE', TIMEOUTS, ttl) end
        end
        if added == 1 then redis.call('DECR', NAME) else redis.call('DECRBY', NAME, added) end
        return {token}
      end
    end
  end
end
local ARGV = #ARGV >= 9 and ARGV or ARGV[3]
  and {ARGV[1], ARGV[2], ARGV[6] or '100000', '', 'take', ARGV[1], ARGV[3], ARGV[5] or 'first', ARGV[4]}
  or {ARGV[1], ARGV[2], '0', '', 'give', ARGV[1], '', '0', ''}
local TOKEN = 'latchkey_token:{' .. NAME .. '}'
local CHANNEL = 'redisson_sc:{' .. NAME .. '}'
local DONE = 'latchkey_done:{' .. NAME .. '}'
local TIMEOUTS = '{' .. NAME .. '}:timeout'
local HOLDERS = 'latchkey_holders:{' .. NAME .. '}'
local function decimal(number) return string.format('%.0f', number) end
local function token_after(now, last, floor, reserved, lean)
  local number = tonumber(now)
  floor = tonumber(floor) or 0
  if last then
    local before = tonumber(last)
    if not (before and before > 0 and before < 9007199254730000) then
      redis.call('SET', TOKEN, last, 'KEEPTTL')
      error('WRONGTYPE ' .. TOKEN .. ' holds no fencing token')
    end
    if before > floor then floor = before end
  end
  if floor >= number then
    local ahead = 5000
    if floor > number + 2 * ahead then
      reserved = math.min(reserved, lean or 100)
    else
      reserved = math.max(0, math.min(reserved, number + ahead - floor - 1))
    end
    number = floor + 1
    redis.call('SET', TOKEN, decimal(number + reserved), 'KEEPTTL')
  end
  redis.call('PEXPIRE', TOKEN, (last or number > tonumber(now)) and '86400000' or '3600000')
  return decimal(number), reserved
end
local AHEAD = 5000
local DAY, HOUR = '86400000', '3600000'
local function clock()
  local now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
  return now
end
local function next_token(now, block, lean)
  local floor = ARGV[2]
  if block and block > 0 then
    local reserved = math.min(block, AHEAD)
    local last = redis.call('SET', TOKEN, decimal(now + reserved), 'KEEPTTL', 'GET')
    return token_after(now, last, floor, reserved, lean)
  end
  local last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
local newest = last and last < now and floor < now and #last == 16 and last > '1'
  and string.byte(last, 7) == string.byte(now, 7)
  if newest then return now, 0 end
  return token_after(now, last, floor, 0, lean)
end
local now = tonumber(clock())
local function many(command, key, list)
  local sum = 0
  for i = 1, #list, 1000 do
    sum = sum + redis.call(command, key, unpack(list, i, math.min(i + 999, #list)))
  end
  return sum
end
local last, known
local function next_number()
  if not last then
    local before = tonumber(redis.call('GET', TOKEN) or '0')
    if not (before and before >= 0 and before < 9007199254730000) then
      error('WRONGTYPE ' .. TOKEN .. ' holds no fencing token')
    end
    last, known = math.max(before, tonumber(ARGV[2])), before > 0
  end
  last = math.max(last + 1, now)
  return last
end
local function reserve(n)
  local more = math.max(0, math.min(n, now + AHEAD - last))
  last = last + more
  return more
end
local function base(owner)
  local prefix
local colon = string.find(owner, ':', 1, true)
local number = string.sub(owner, colon + 1, #owner > colon + 9 and -10 or -1)
local fourth = number % 256
local high = (number - fourth) / 256
local third = high % 256
high = (high - third) / 256
local second = high % 256
prefix = (colon > 10 and string.sub(owner, colon - 10, colon - 1)
  or string.sub('..........' .. string.sub(owner, 1, colon - 1), -10))
  .. string.char((high - second) / 256 % 256, second, third, fourth)
  return prefix
end
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
local function parse_holder(text)
  local n, token, short, lease, owner = string.match(text or '', '^(%d+):(%d+):([01]):(%d+):([^:]+:%d+)$')
  if not n or #n > 4 or #token > 16 or #lease > 10
    or tonumber(n) == 0 or tonumber(n) > 1000 then return nil end
  return tonumber(n), token, short, owner, lease
end
local HOLDERS_KEPT = '172800000' -- two days, in ms: longer than any lease
local KIND = 's'
local COUNTS_HELD = true
local NEVER = 922337203685477
local ms = math.floor(now / 1000)
local records, changed, moved = {}, {}, 0
local bases = {}
local others, orphans = {}, {} -- to remove: permits that are not ours, and holders without permits
local junk = {}                -- to remove: what is nobody's permit, and counts for none
local function acknowledge() end -- a holder is the record of its command
local function foresee() end     -- its keys are known
local FEW, MANY, DROPS = 2, 500, 20000
local function prefetch(owners)
  local names, prefixes = {}, {}
  for i = 1, #owners do
    local owner = owners[i]
    if records[owner] == nil then
      local prefix = bases[owner] or base(owner)
      bases[owner] = prefix
      names[#names + 1], prefixes[#prefixes + 1] = owner, prefix
    end
  end
  if #names == 0 then return end
  local held = redis.call('HMGET', HOLDERS, unpack(prefixes))
  for i = 1, #names do
    local n, token, short, _, lease = parse_holder(held[i])
    records[names[i]] = n
      and {owner = names[i], was = n, n = n, token = token, short = short, lease = lease} or false
  end
end
local function holding(owner)
  if records[owner] == nil then prefetch({owner}) end
  local record = records[owner]
  return record and record.n > 0 and record or nil
end
local function change(record, n)
  moved = moved + n - record.n
  record.n = n
  changed[record.owner] = record
end
local function take(owner, n, lease, short, turns)
  local token = decimal(next_number())
  local before = records[owner]
  local record = {
    owner = owner, was = before and before.was or 0, n = 0, token = token,
    short = short and '1' or '0', lease = lease, ends = ms + 1 + lease,
    reserved = turns and reserve(turns) or 0,
  }
  bases[owner] = bases[owner] or base(owner)
  records[owner] = record
  change(record, n)
  return record
end
local function extend(record, lease)
  if not record.ends then
    local ends = redis.call('ZSCORE', TIMEOUTS, bases[record.owner] .. '\0\0')
    if not ends or (tonumber(ends) or math.huge) <= ms then return false end
  end
  record.ends, record.short, record.lease = ms + 1 + lease, '0', lease
  change(record, record.n)
  return true
end
local card
local function out()
  card = card or redis.call('ZCARD', TIMEOUTS)
  return card - #others - #junk + moved
end
local function write()
  local set, names, del, add, rem, scores = {}, {}, {}, {}, {}, {}
  for owner, record in pairs(changed) do
    local prefix = bases[owner]
    if record.n > 0 then
      names[#names + 1] = prefix
      set[#set + 1] = prefix
      set[#set + 1] = record.n .. ':' .. record.token .. ':' .. record.short .. ':' .. record.lease
        .. ':' .. owner
      if record.ends then
        scores[record.ends] = scores[record.ends] or decimal(record.ends)
        append_permits(add, prefix, 0, record.n, scores[record.ends])
      end
    elseif record.was > 0 then
      del[#del + 1] = prefix
    end
    append_permits(rem, prefix, record.n, record.was)
  end
  local new = {}
  for _, name in ipairs(#orphans > 0 and names or {}) do new[name] = true end
  for i = 2, #others > 0 and #add or 0, 2 do new[add[i]] = true end
  for _, prefix in ipairs(orphans) do
    if not new[prefix] then del[#del + 1] = prefix end
  end
  for _, permit in ipairs(others) do
    if not new[permit] then rem[#rem + 1] = permit end
  end
  local freed = -many('ZADD', TIMEOUTS, add)
  many('HSET', HOLDERS, set)
  many('HDEL', HOLDERS, del)
  freed = freed + many('ZREM', TIMEOUTS, rem)
  many('ZREM', TIMEOUTS, junk)
  if #set > 0 then
    redis.call('PEXPIRE', HOLDERS, HOLDERS_KEPT)
    local ttl = redis.call('PTTL', NAME)
    if ttl > 0 and ttl < 43200000 and redis.pcall('EXISTS', DONE .. ':stated') == 0 then
      redis.call('PEXPIRE', TIMEOUTS, ttl)
    end
  end
  return freed
end
local function first_end()
  if moving and moving.lacks(TIMEOUTS) then return -1 end
  local score = tonumber(redis.call('ZRANGE', TIMEOUTS, 0, 0, 'WITHSCORES')[2])
  if not score or score >= NEVER then return -1 end
  return math.max(0, score - ms)
end
local RECLAIMS = 5000 -- how many permits one script looks at
local function cut()
  local last = redis.call('ZREVRANGE', TIMEOUTS, 0, 0, 'WITHSCORES')
  local function excess(permit, score)
    local prefix = string.sub(permit, 1, 14)
    local n, token, short, owner, lease = parse_holder(redis.call('HGET', HOLDERS, prefix))
    if not n or score - ms - 1 <= tonumber(lease) then return false end
    bases[owner] = prefix
    records[owner] = records[owner]
      or {owner = owner, was = n, n = n, token = token, short = short, lease = lease}
    return records[owner]
  end
  if not last[1] then return end
  if now % 16 ~= 0 and not excess(last[1], tonumber(last[2]) or math.huge) then return end
  local all = redis.call('ZRANGEBYSCORE', TIMEOUTS, '(' .. decimal(ms), '(' .. decimal(NEVER), 'WITHSCORES',
    'LIMIT', 0, RECLAIMS)
  for i = 1, #all, 2 do
    local record = string.sub(all[i], 15) == '\0\0' and excess(all[i], tonumber(all[i + 1]) or math.huge)
    if record and record.n > 0 and not record.ends then
      record.ends = ms + 1 + record.lease
      change(record, record.n)
    end
  end
end
local function reclaim(unresponsive)
  cut()
  local dead = redis.call('ZRANGEBYSCORE', TIMEOUTS, '-inf', decimal(ms), 'LIMIT', 0, RECLAIMS)
  local freed, seen = 0, {}
  for _, permit in ipairs(dead) do
    local prefix = string.sub(permit, 1, 14)
    if #permit ~= 16 then
      junk[#junk + 1] = permit
      seen[prefix] = true
    elseif seen[prefix] == nil then
      local n, token, short, owner, lease = parse_holder(redis.call('HGET', HOLDERS, prefix))
      seen[prefix] = n ~= nil
      if n then
        bases[owner] = prefix
        records[owner] = records[owner]
          or {owner = owner, was = n, n = n, token = token, short = short, lease = lease}
        local record = records[owner]
        if record.n > 0 and not record.ends then
          freed = freed + record.n
          change(record, 0)
          if record.short == '1' then unresponsive(string.match(owner, '^[^:]+')) end
        end
      end
    end
    if not seen[prefix] then
      others[#others + 1] = permit
      freed = freed + 1
    end
  end
  if now % 64 == 0 and redis.call('HLEN', HOLDERS) > redis.call('ZCARD', TIMEOUTS) + 100 then
    for _, prefix in ipairs(redis.call('HKEYS', HOLDERS)) do
      if not redis.call('ZSCORE', TIMEOUTS, prefix .. '\0\0') then orphans[#orphans + 1] = prefix end
    end
  end
  return freed, #dead == RECLAIMS
end
local function ready()
  if not moving then return end
  moving.need(TOKEN)
  if HOLDERS then
    moving.need(TIMEOUTS)
    moving.need(HOLDERS)
  end
end
local function queued()
  if moving then return not moving.lacks(QUEUE) end
  return redis.call('EXISTS', QUEUE) == 1
end
local free = redis.call('GET', NAME)
if free and not (#free <= 11 and string.find(free, '^-?%d+$')) then
  error('WRONGTYPE ' .. NAME .. ' holds data that is not a semaphore')
end
free = free and tonumber(free) or nil
local found = free   -- the free permits in Redis
local bonus = 0      -- by how much capacity.lua changes their number
local given = false  -- somebody gave permits back
local queue          -- see open_queue; nil while nobody waits, as far as is known
local function add(n)
  if free then free = free + n end
  given = given or n > 0
end
local function capacity() return (free or 0) + out() end
local function disown(owner, keep)
  local record = holding(owner)
  if not record then return false end
  if keep < record.n then -- or it is a late copy of a partial release
    add(record.n - keep)
    change(record, keep)
  end
  return true
end
local function commit()
  if given then redis.pcall('PEXPIRE', QUEUE, '60000') end
  if last then redis.call('SET', TOKEN, decimal(last), 'PX', known and DAY or HOUR) end
  local freed = write()
  if found then
    local change = freed and freed + bonus or free - found
    if change ~= 0 then free = redis.call('INCRBY', NAME, decimal(change)) end
  elseif free then
    redis.call('SET', NAME, decimal(free))
  end
  if queue then queue.commit() end
  if given and free and free > 0 then redis.pcall(VERB, CHANNEL, free) end
end
local function open_queue()
  if queue then return queue end
local INBOX = 'latchkey_inbox:'
local SHORT = 2000
local OUTLIVES = 1000
local QUEUE_KEPT = '60000'
local counted = {}
local function alive(client)
  if counted[client] == nil then
    local reply = redis.pcall('PUBSUB', NUMSUB, INBOX .. client)
    counted[client] = reply.err ~= nil or reply[2] > 0
  end
  return counted[client]
end
local function tell(client, kind, text)
  return redis.pcall(VERB, INBOX .. client, '1 ' .. kind .. ' ' .. text .. ' ' .. NAME)
end
local function tell_grant(client, kind, number, text, reserved, others, now, short)
  tell(client, kind, number .. ' ' .. text .. ' ' .. reserved .. ' ' .. others .. ' ' .. now .. ' ' .. short)
end
local PACE = 'latchkey_pace:{' .. NAME .. '}'
local LISTENERS = 1000
local function tell_waiting(kind, more, asker)
  local told, own = {}, asker and string.match(asker, '^[^:]+')
  if moving and moving.lacks(QUEUE) then return told end
  for _, entry in ipairs(redis.pcall('LRANGE', QUEUE, 0, LISTENERS - 1)) do -- nobody waits in foreign data
    local client, number = string.match(entry, '^1:([^:]+):(%d+):')
    if client and client ~= own and not told[client] then
      told[client] = entry
      tell(client, kind, number .. more)
    end
  end
  return told
end
local function note_lease(lease, asker)
  if tonumber(lease) >= SHORT then return end
  local before = redis.pcall('GET', PACE)
  before = type(before) == 'string' and tonumber(before)
  if before and before <= tonumber(lease) then
    if before == tonumber(lease) then redis.pcall('PEXPIRE', PACE, QUEUE_KEPT) end
    return
  end
  if SLOTS and type(redis.pcall('EXISTS', NAME, PACE)) ~= 'number' then return end
  redis.pcall('SET', PACE, lease, 'PX', QUEUE_KEPT)
  tell_waiting('l', ' ' .. lease, asker)
end
local function ask_in(ms)
  local pace = redis.pcall('GET', PACE)
  pace = type(pace) == 'string' and tonumber(pace)
  if pace and (ms < 0 or pace < ms) then return math.max(pace, 10) end -- no lease is shorter than 10 ms
  return ms
end
local CALLED = 'latchkey_called:{' .. NAME .. '}'
local answering = false
local function of_unresponsive(clients)
  local found, called, own = {}, {}, string.match(ARGV[1], '^[^:]+')
  if moving and moving.lacks(QUEUE) then return found end
  local left = redis.pcall('PTTL', CALLED)
  answering = type(left) == 'number' and QUEUE_KEPT - left < 1000
  local list = answering and {} or redis.pcall('HGETALL', CALLED) -- foreign data says nothing
  for i = 1, #list, 2 do called[list[i]] = list[i + 1] end
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, -1)) do
    local client = string.match(entry, '^1:([^:]+):')
    if client and client ~= own then
      if called[client] == entry then clients[client] = true end -- its others stand behind this one
      if clients[client] then found[#found + 1] = entry end
    end
  end
  return found
end
local MOST, LOOKS, ASIDES = 1000, 100, 100
local list, more, tail = {}, true, {}
local removals = {} -- entries to remove wherever they stand in what was not read
local first = 1     -- all places before this one are gone
local chunk = FEW -- how many entries are read next
local joined, length = false, nil
local briefest = SHORT -- ms: the shortest lease of those who join, or that began while somebody waited
local messages, told = {}, {}
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
local function remove(entry)
  for i = first, #list do
    if list[i][1] == entry then list[i][2] = true end
  end
  for _, place in ipairs(tail) do
    if place[1] == entry then place[2] = true end
  end
  if more then removals[entry] = true end
end
local function ask(client, number)
  if not told[client] then
    told[client] = true
    messages[#messages + 1] = {client, 'a', number}
  end
end
local ALL, PASSING, NOBODY = 1, 2, 3
local door = ALL
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
local function others_than(client)
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
local function join(entry, lease, fresh, longest, aside, passing)
  joined = true
  if lease < briefest then briefest = lease end
  length = length or moving and moving.lacks(QUEUE) and 0 or redis.call('LLEN', QUEUE)
  if not others then look_around() end
  if not fresh and (find(entry) or more and not removals[entry] and redis.call('LPOS', QUEUE, entry)) then
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
      if m[7] and not wait[client] then wait[client] = others_than(client) end
      tell_grant(client, KIND, m[3], m[4], m[6], m[7] and wait[client] or 0, clock, m[5])
    else
      tell(m[1], m[2], m[3])
    end
  end
  note_lease(briefest)
  if unanswered then
if not answering and (not SLOTS or type(redis.pcall('EXISTS', NAME, CALLED)) == 'number') then
  redis.pcall('DEL', CALLED)
  for client, entry in pairs(tell_waiting('a', '', ARGV[1])) do redis.pcall('HSET', CALLED, client, entry) end
  redis.pcall('PEXPIRE', CALLED, QUEUE_KEPT)
end
  end
end
queue = {
  grant = serve, join = join, remove = remove, reclaim = reclaim_once, commit = commit_queue, ask = ask,
  may_take = function(passing) return door == ALL or door == PASSING and passing end,
  began = function(lease) if lease < briefest then briefest = lease end end,
  first_end = function() return unfinished and 0 or ask_in(first_end()) end,
  expect = function(n) chunk = math.max(chunk, n) end,
  look = place_at, messages = messages, tell = tell,
}
  return queue
end
local function grant()
  if queue or queued() then open_queue().grant() end
end
local function give_back(ids)
  ready()
  prefetch(ids)
  if queued() then foresee(open_queue().look) end
  for _, id in ipairs(ids) do disown(id, 0) end
  pcall(grant) -- foreign data under a companion's name must not keep permits from being given back
  commit()
end
local function parse_mode(text)
  if string.sub(text, 1, 3) ~= 'try' then return string.sub(text, 1, 5), false end
  if text == 'try' then return text, false end
  return 'try', clock() > string.sub(text, 5)
end
ready()
local replies, ends = {}, {}
local longest = tonumber(ARGV[3])
acknowledge(string.match(ARGV[1], '^[^:]+'), ARGV[4])
local owners, gives = {}, 0
for i = 5, #ARGV, 5 do
  owners[#owners + 1] = ARGV[i + 1]
  if ARGV[i] ~= 'take' then
    gives = gives + 1
    if ARGV[i] == 'give' and ARGV[i + 2] ~= '' then redis.pcall('LREM', QUEUE, 0, ARGV[i + 2]) end
  end
end
prefetch(owners)
if queued() then
  open_queue().expect(gives + 1)
  if gives > 0 then foresee(queue.look) end
end
local function reply_to(record, flags)
  if string.find(flags, 'd', 1, true) then return {0, tonumber(record.token), record.n, 0} end
  if (record.reserved or 0) > 0 then return {0, tonumber(record.token), record.reserved, 0} end
  return tonumber(record.token)
end
local function contend(owner, lease, mode, demand, n, flags, turns)
  local line = open_queue()
  if mode == 'again' then
local CALLED = 'latchkey_called:{' .. NAME .. '}'
if redis.pcall('EXISTS', CALLED) == 1 then redis.pcall('HDEL', CALLED, (string.match(ARGV[1], '^[^:]+'))) end
  end
  line.reclaim()
  local entry = '1:' .. owner .. ':' .. lease .. ':' .. demand
  local record = line.grant(entry, COUNTS_HELD and mode == 'again')
  if record then return reply_to(record, flags) end
  local drains, passes, patient = false, false, false
  if flags ~= '' then
    drains = string.find(flags, 'd', 1, true)
    passes = string.find(flags, 'p', 1, true)
    patient = string.find(flags, 'g', 1, true)
  end
  if drains then n = math.max(1, math.min(free or 0, 1000)) end
  if free and free >= n and (drains or line.may_take(passes)) then
    if mode ~= 'first' then line.remove(entry) end
    line.began(lease)
    free = free - n
    return reply_to(take(owner, n, lease, false, turns), flags)
  end
  local never, reply = free and n > capacity(), nil
  if not free and not string.find(flags, 'u', 1, true) then
    reply = {-4, 0, now}
  elseif never and not patient and not drains then
    reply = {-5, capacity(), now}
  elseif mode == 'try' then
    reply = {-1, 0, now}
    ends[#ends + 1] = reply
    return reply
  end
  if reply then
    if mode ~= 'first' then line.remove(entry) end
    return reply
  end
  if moving and not moving.has(QUEUE) then
    return {-7, 0, now}
  end
  local sequence, others = line.join(entry, lease, mode == 'first', longest, never, passes)
  if not sequence then return {-2, others, now} end -- the length
  reply = {sequence, 0, now}
  if others == 1 then reply[4] = 1 end
  ends[#ends + 1] = reply
  return reply
end
for i = 5, #ARGV, 5 do
  local kind, owner = ARGV[i], ARGV[i + 1]
  local reply
  if kind == 'take' then
    local lease, demand = tonumber(ARGV[i + 2]), ARGV[i + 4]
    local mode, late = parse_mode(ARGV[i + 3])
    local n, flags, turns = string.match(demand, '^(%d+)(%a*)(%d*)$')
    n, turns = tonumber(n), tonumber(turns)
    local record = holding(owner)
    if late then
      reply = {-6, 0, now}
    elseif record and extend(record, lease) then
      reply = reply_to(record, flags)
    elseif not record and not queue and (flags == '' or flags == 't') and free and free >= n then
      free = free - n
      reply = reply_to(take(owner, n, lease, false, turns), flags)
    else
      reply = contend(owner, lease, mode, demand, n, flags, turns)
    end
  elseif kind == 'give' then
    reply = disown(owner, tonumber(ARGV[i + 3])) and 1 or 0
    if queue then pcall(queue.grant) end
  elseif holding(owner) then
    reply = 1
  elseif not free then
    reply = -4
  elseif free + ARGV[i + 2] > 2147483647 then
    reply = -6
  else
    local n = tonumber(ARGV[i + 2])
    take(owner, n)
    add(n)
    reply = 1
    if queue then pcall(queue.grant) end
  end
  replies[#replies + 1] = reply
end
commit()
if #ends > 0 then
  local first = queue.first_end()
  for _, reply in ipairs(ends) do reply[2] = first end
end
return replies
