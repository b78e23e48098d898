-- take: take permits of a semaphore, or join its queue. Safe to repeat: an owner that asks again gets the token it has, with its
-- whole lease. It is also how a waiter asks again, and how it confirms a grant.
--
-- KEYS  1 available, and what the store has: see leased.lua and plain.lua
--       2 queue    LIST   of 1:<client id>:<number>:<lease in ms>:<permits and flags>, the head is next
--       3 token    STRING last number handed out
--       4 channel  on which Redisson's waiters hear how many permits are free
-- ARGV  1 owner id, 2 inbox prefix, 3 publish verb, 4 floor, 5 lease, 6 mode, 7 longest queue: as in acquire.lua
--       8 demand   how many permits, followed by flags: p may pass a head that does not fit; g waits although there are fewer
--                  permits; u waits until the semaphore is initialised; d takes all that are free (mode try)
--       9 numbers of commands of this client that were answered
-- Reply token                 (integer) the caller holds the permits
--       {0, token, permits, 0}      the same, of a demand with flag d
--       {sequence, ends, now}       queued, as in acquire.lua; ends: ms until the first lease of a holder ends
--       {-1, ends, now}             not free (mode try)
--       {-2, length, now}           the queue is full
--       {-4, 0, now}                not initialised
--       {-5, capacity, now}         there are not so many permits
-- include token.lua
-- include store.lua

local client, number = string.match(ARGV[1], '^([^:]+):(%d+)$')
acknowledge(client, ARGV[9])
if ARGV[6] == 'first' and redis.call('EXISTS', KEYS[2]) == 0 then
  local free, n = redis.call('GET', KEYS[1]), tonumber(string.match(ARGV[8], '^%d+'))
  if free and string.find(free, '^%d+$') and tonumber(free) >= n then
    return (take(client, number, n, tonumber(ARGV[5]), micros()))
  end
end

-- include permits.lua

local n, flags = parse_demand(ARGV[8])
local function has(flag) return string.find(flags, flag, 1, true) ~= nil end

local now = micros()
local free = available()
local token, holds = owned(client, number, ARGV[5], now)
if not token then
  local freed = reclaim(now, drop_unresponsive)
  free = add(free, freed)
  local entry = '1:' .. ARGV[1] .. ':' .. ARGV[5] .. ':' .. ARGV[8]
  free, token = grant(free, entry, now)
  if not token and free then
    if has('d') then n = math.max(1, math.min(free, 1000)) end
    if free >= n and (has('p') or has('d') or redis.call('EXISTS', KEYS[2]) == 0) then
      if ARGV[6] == 'again' then redis.call('LREM', KEYS[2], 1, entry) end
      local lease = tonumber(ARGV[5])
      token, free = take(client, number, n, lease, now), free - n
      if lease < SHORT then tell_next(lease) end
    end
  end
  holds = n
  if freed > 0 then announce(free) end
  if not token then
    local refused
    if not free and not has('u') then
      refused = {-4, 0, now}
    elseif free and not has('g') and not has('d') and n > capacity(free) then
      refused = {-5, capacity(free), now}
    elseif ARGV[6] == 'try' then
      return {-1, first_end(now), now}
    end
    if refused then
      if ARGV[6] == 'again' then redis.call('LREM', KEYS[2], 1, entry) end
      return refused
    end
    local sequence, before = join(entry, now)
    if not sequence then return {-2, before, now} end
    return {sequence, first_end(now), now}
  end
end
if has('d') then return {0, token, holds, 0} end
return token
