-- trade: carry out requests of one client in one step: take permits of a semaphore or join its queue, give
-- permits back, add permits. Safe to repeat: an owner that takes again gets the token that it has, with its
-- whole lease, and what was given back is not there a second time. A waiter also asks again, and confirms a
-- grant, with a take.
--
-- A permit whose lease is over is the owner's until somebody takes it back. An owner that gives it back
-- before then has held it all the time: nobody else had it in between.
--
-- NAME     available, and what the store has: see permit/leased.lua and permit/plain.lua
-- QUEUE    LIST   of 1:<client id>:<number>:<lease in ms>:<permits and flags>; the head is next
-- TOKEN    STRING last number handed out
-- CHANNEL  on which Redisson's waiters hear how many permits are free
-- ARGV  1 owner id of a request, 2 floor: as in lock/acquire.lua
--       3 longest queue, entries
--       4 numbers of commands of this client that were answered
--       then for each request five arguments: kind, owner id, and
--       take   lease in ms; mode (shared/attempt.lua); demand: how many permits, followed by flags:
--              p  may pass a head that does not fit
--              g  waits although there are fewer permits
--              u  waits until the semaphore is initialised
--              d  takes all that are free (mode try)
--              t<number>  the client may pass the permits on so often: for that it gets tokens of leased
--                         permits, and hears whether others wait; it stands last
--       give   the id's queue entry when it may be queued, else the empty string; how many permits the owner
--              keeps; unused
--       put    how many permits to add (plain permits); unused; unused
-- Reply for each request
--       take   token                    (integer) the caller holds the permits
--              {0, token, permits, 0}   the same, for a demand with flag d
--              {0, token, reserved, 0}  the same, when tokens were reserved by this script
--              {sequence, ends, now}    queued, as in lock/acquire.lua
--              {sequence, ends, now, 1} the same, and other clients wait too
--              {BUSY, ends, now}        not free (mode try)
--              {FULL, length, now}      the queue is full
--              {UNSET, 0, now}          not initialised
--              {FEWER, capacity, now}   there are fewer permits
--              {LATE, 0, now}           the deadline was over: nothing was done
--              {MOVING, 0, now}         the request would have to queue, but the slot is moving, and the
--                                       queue may be on the other side
--       give   1 the id held permits, 0 it did not
--       put    1 done, by this or an earlier copy
--              UNSET not initialised
--              RANGE there would be more than 2^31 - 1: nothing was done
--
-- A single request may have fewer arguments: permit/quick.lua (leased permits) and permit/count.lua (plain
-- permits) say which. One of these and a store stand in front of this file.
-- include permit/transaction.lua
-- include shared/attempt.lua

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

-- Serves a take that free permits alone do not serve: somebody waits, or there are too few.
local function contend(owner, lease, mode, demand, n, flags, turns)
  local line = open_queue()
  if mode == 'again' then
    -- inline keys CALLED
    -- inline shared/asks.lua
  end
  line.reclaim()
  local entry = '1:' .. owner .. ':' .. lease .. ':' .. demand
  -- Whoever asks again looks at the first also while nothing is free. That one's process may not ask for it:
  -- it asks for its oldest, which need not be the one of them that comes first, or waits aside.
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
    reply = {REPLY_UNSET, 0, now}
  elseif never and not patient and not drains then
    reply = {REPLY_FEWER, capacity(), now}
  elseif mode == 'try' then
    reply = {REPLY_BUSY, 0, now}
    ends[#ends + 1] = reply
    return reply
  end
  if reply then
    if mode ~= 'first' then line.remove(entry) end
    return reply
  end
  if moving and not moving.has(QUEUE) then
    return {REPLY_MOVING, 0, now}
  end
  local sequence, others = line.join(entry, lease, mode == 'first', longest, never, passes)
  if not sequence then return {REPLY_FULL, others, now} end -- the length
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
      reply = {REPLY_LATE, 0, now}
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
    -- redisson if reply == 1 then leave_one() end
    -- Foreign data under a companion's name must not keep permits from being given back.
    if queue then pcall(queue.grant) end
  elseif holding(owner) then
    reply = 1
  elseif not free then
    reply = REPLY_UNSET
  elseif free + ARGV[i + 2] > 2147483647 then
    reply = REPLY_RANGE
  else
    local n = tonumber(ARGV[i + 2])
    take(owner, n)
    add(n)
    reply = 1
    -- redisson leave_one()
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
