-- trade: take permits of a semaphore, or join its queue; give them back, all or some: any number of such requests of one client, in
-- one step. Safe to repeat: an owner that asks again gets the token it has, with its whole lease, and what was given back is
-- not there a second time. A take is also how a waiter asks again, and how it confirms a grant.
--
-- Permits whose lease is over, but which nobody has taken back, are still the owner's when it gives them back: nobody else had
-- them in between.
--
-- KEYS  1 available, and what the store has: see leased.lua and plain.lua
--       2 queue    LIST   of 1:<client id>:<number>:<lease in ms>:<permits and flags>, the head is next
--       3 token    STRING last number handed out
--       4 channel  on which Redisson's waiters hear how many permits are free
-- ARGV  1 owner id of a request, 2 inbox prefix, 3 publish verb, 4 floor: as in acquire.lua
--       5 longest queue, entries
--       6 numbers of commands of this client that were answered
--       then for each request: kind, owner id, and
--       take   lease in ms, mode (as in acquire.lua), demand: how many permits, followed by flags: p may pass
--              a head that does not fit; g waits although there are fewer permits; u waits until the semaphore is initialised;
--              d takes all that are free (mode try)
--       give   the id's queue entry when it may be queued, else the empty string; how many permits it keeps; unused
--       put    how many permits are added (plain permits); unused; unused
-- Reply for each request
--       take   token                 (integer) the caller holds the permits
--              {0, token, permits, 0}      the same, of a demand with flag d
--              {sequence, ends, now}       queued, as in acquire.lua
--              {-1, ends, now}             not free (mode try)
--              {-2, length, now}           the queue is full
--              {-4, 0, now}                not initialised
--              {-5, capacity, now}         there are not so many permits
--              {-6, 0, now}                too late: nothing was done
--              {-7, 0, now}                would have to queue, but the slot is moving, and the queue may be on the other side
--       give   1 the id held permits, 0 it did not
--       put    1 done, by this or an earlier copy; -4 not initialised; -6 there would be more than 2^31 - 1, nothing was done
-- include token.lua
-- include attempt.lua
-- include quick.lua

if not moving and #ARGV == 11 and ARGV[6] == '' and redis.call('EXISTS', KEYS[2]) == 0 then
  local reply
  if ARGV[7] == 'take' then
    local _, late = parse_mode(ARGV[10])
    reply = not late and quick_take(ARGV[8], tonumber(ARGV[9]), string.match(ARGV[11], '^%d+$'))
  elseif ARGV[7] == 'give' and ARGV[9] == '' and ARGV[10] == '0' then
    reply = quick_give(ARGV[8])
  end
  if reply then return {reply} end
end

-- include permits.lua

ready()
local replies, ends = {}, {}
local longest = tonumber(ARGV[5])
acknowledge(string.match(ARGV[1], '^[^:]+'), ARGV[6])

local owners, gives = {}, 0
for i = 7, #ARGV, 5 do
  owners[#owners + 1] = ARGV[i + 1]
  if ARGV[i] == 'give' then
    gives = gives + 1
    if ARGV[i + 2] ~= '' then redis.pcall('LREM', KEYS[2], 0, ARGV[i + 2]) end
  end
end
prefetch(owners)
if queued() then open_queue().expect(gives + 1) end

local function reply_to(record, flags)
  if string.find(flags, 'd', 1, true) then return {0, tonumber(record.token), record.n, 0} end
  return tonumber(record.token)
end

-- For a take that is not served at once.
local function contend(owner, lease, mode, demand, n, flags)
  local line = open_queue()
  line.reclaim()
  local entry = '1:' .. owner .. ':' .. lease .. ':' .. demand
  local record = line.grant(entry)
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
    return reply_to(take(owner, n, lease), flags)
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
  if moving and not moving.has(KEYS[2]) then
    return {-7, 0, now}
  end
  local sequence, length = line.join(entry, lease, mode == 'first', longest, never, passes)
  if not sequence then return {-2, length, now} end
  reply = {sequence, 0, now}
  ends[#ends + 1] = reply
  return reply
end

for i = 7, #ARGV, 5 do
  local kind, owner = ARGV[i], ARGV[i + 1]
  local reply
  if kind == 'take' then
    local lease, demand = tonumber(ARGV[i + 2]), ARGV[i + 4]
    local mode, late = parse_mode(ARGV[i + 3])
    local n, flags = string.match(demand, '^(%d+)(%a*)$')
    n = tonumber(n)
    local record = holding(owner)
    if late then
      reply = {-6, 0, now}
    elseif record and extend(record, lease) then
      reply = reply_to(record, flags)
    elseif not record and not queue and flags == '' and free and free >= n then
      free = free - n
      reply = tonumber(take(owner, n, lease).token)
    else
      reply = contend(owner, lease, mode, demand, n, flags)
    end
  elseif kind == 'give' then
    reply = disown(owner, tonumber(ARGV[i + 3])) and 1 or 0
    if queue then pcall(queue.grant) end -- foreign data under a companion's name does not keep permits from being given back
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
