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
--       take   lease in ms, mode (try, first, again: as in acquire.lua), demand: how many permits, followed by flags: p may pass
--              a head that does not fit; g waits although there are fewer permits; u waits until the semaphore is initialised;
--              d takes all that are free (mode try); f the lease is fixed
--       give   the id's queue entry when it may be queued, else the empty string; how many permits it keeps; unused
--       put    how many permits are added (plain permits); unused; unused
-- Reply for each request
--       take   token                 (integer) the caller holds the permits
--              {0, token, permits, 0}      the same, of a demand with flag d
--              {sequence, ends, now}       queued, as in acquire.lua; ends: ms until the first lease of a holder ends
--              {-1, ends, now}             not free (mode try)
--              {-2, length, now}           the queue is full
--              {-4, 0, now}                not initialised
--              {-5, capacity, now}         there are not so many permits
--       give   1 the id held permits, 0 it did not
--       put    1 done, by this or an earlier copy; -4 not initialised
-- include permits.lua

local replies, ends = {}, {}
local longest = tonumber(ARGV[5])
acknowledge(string.match(ARGV[1], '^[^:]+'), ARGV[6])

local read = {}
for i = 7, #ARGV, 5 do
  if ARGV[i] == 'give' and ARGV[i + 2] ~= '' then redis.pcall('LREM', KEYS[2], 0, ARGV[i + 2]) end
  read[#read + 1] = ARGV[i + 1]
end
prefetch(read)
chunk = math.max(chunk, 2 * (#ARGV - 6) / 5)

local function take_one(owner, lease, mode, demand)
  local client, number = string.match(owner, '^([^:]+):(%d+)$')
  local n, flags = parse_demand(demand)
  lease = tonumber(lease)
  local function has(flag) return string.find(flags, flag, 1, true) ~= nil end
  local function reply(record)
    if has('d') then return {0, tonumber(record.token), record.n, 0} end
    return tonumber(record.token)
  end
  local record = holding(client, number)
  if record and extend(record, lease) then return reply(record) end
  if mode == 'first' and not record and free and free >= n and not head() then
    free = free - n
    return reply(take(client, number, n, lease))
  end
  reclaim_once()
  local entry = '1:' .. owner .. ':' .. lease .. ':' .. demand
  record = grant(entry)
  if record then return reply(record) end
  if has('d') then n = math.max(1, math.min(free or 0, 1000)) end
  if free and free >= n and (door == ALL or has('d') or door == PASSING and has('p')) then
    if mode ~= 'first' then remove(entry) end
    briefest = math.min(briefest, lease)
    free = free - n
    return reply(take(client, number, n, lease))
  end
  local refused
  if not free and not has('u') then
    refused = {-4, 0, now}
  elseif free and not has('g') and not has('d') and n > capacity() then
    refused = {-5, capacity(), now}
  elseif mode == 'try' then
    refused = {-1, 0, now}
    ends[#ends + 1] = refused
    return refused
  end
  if refused then
    if mode ~= 'first' then remove(entry) end
    return refused
  end
  local sequence, length = join(entry, mode == 'first', longest, free and n > capacity(), has('p'))
  if not sequence then return {-2, length, now} end
  local queued = {sequence, 0, now}
  ends[#ends + 1] = queued
  return queued
end

for i = 7, #ARGV, 5 do
  local kind, owner = ARGV[i], ARGV[i + 1]
  local client, number = string.match(owner, '^([^:]+):(%d+)$')
  local reply
  if kind == 'take' then
    reply = take_one(owner, ARGV[i + 2], ARGV[i + 3], ARGV[i + 4])
  elseif kind == 'give' then
    reply = disown(client, number, tonumber(ARGV[i + 3])) and 1 or 0
    pcall(grant) -- foreign data under the name of a companion does not keep permits from being given back
  elseif holding(client, number) then
    reply = 1
  elseif not free then
    reply = -4
  else
    take(client, number, tonumber(ARGV[i + 2]))
    add(tonumber(ARGV[i + 2]))
    reply = 1
    pcall(grant)
  end
  replies[#replies + 1] = reply
end
commit()
if #ends > 0 then
  local first = unfinished and 0 or first_end()
  for _, reply in ipairs(ends) do reply[2] = first end
end
return replies
