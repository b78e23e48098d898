-- leased: the store of permits that have a holder and a lease, in the layout of Redisson's
-- RPermitExpirableSemaphore. One of the two stores of semaphores: permit/transaction.lua says what a store
-- does.
--
-- NAME      STRING free permits; negative after a shrink below what is held; absent: not initialised
-- QUEUE, TOKEN and CHANNEL: see permit/trade.lua
-- DONE      prefix of the records of commands that take effect once
-- TIMEOUTS  ZSET   permit (16 raw bytes) -> ms since the epoch when its lease ends; a lease of
--                  Redisson may never end
-- HOLDERS   HASH   the first 14 bytes of an owner's permits -> see permit/holder.lua; expires
-- include permit/begin.lua
-- include permit/holder.lua

local KIND = 's'
local COUNTS_HELD = true
local NEVER = 922337203685477
local ms = math.floor(now / 1000)

-- What owners hold, by owner id; false for nothing. A record has
--   owner, token, short, lease  see permit/holder.lua
--   was, n                      how many permits the owner held, and how many it holds now
--   ends                        when the lease ends, if this script has changed that
--   reserved                    so many tokens behind its own are the owner's, if this script made the record
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

-- Counts also what an owner has whose lease is over, until somebody takes it back.
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
  -- redisson turns = turns and within_turns(turns)
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
  -- An owner may have taken just now what belonged to nobody known: that stays.
  local new = {}
  for _, name in ipairs(#orphans > 0 and names or {}) do new[name] = true end
  for i = 2, #others > 0 and #add or 0, 2 do new[add[i]] = true end
  for _, prefix in ipairs(orphans) do
    if not new[prefix] then del[#del + 1] = prefix end
  end
  for _, permit in ipairs(others) do
    if not new[permit] then rem[#rem + 1] = permit end
  end
  -- What is new is written before what is old goes: in a slot that is moving, nobody can make a key again
  -- that is gone. ZADD comes first of all: there may be foreign data under the key, which nothing has read
  -- yet, and then Redis refuses it.
  local freed = -many('ZADD', TIMEOUTS, add)
  many('HSET', HOLDERS, set)
  many('HDEL', HOLDERS, del)
  freed = freed + many('ZREM', TIMEOUTS, rem)
  many('ZREM', TIMEOUTS, junk)
  if #set > 0 then
    redis.call('PEXPIRE', HOLDERS, HOLDERS_KEPT)
    local ttl = redis.call('PTTL', NAME)
    -- Redisson gave the semaphore this time to live, unless its capacity was stated: see permit/capacity.lua.
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

-- Cuts leases that have more left than the holder asked for: the server's clock was set back since they
-- began, and perhaps nobody is left to renew them. Such a lease begins again now. That takes no time from a
-- holder who lives. A permit of Redisson says no lease, and is left alone.
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
  -- Usually the last lease alone is looked at. It may end so late rightly, and hide others: now and then, all
  -- are looked at.
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

-- unresponsive(client) is called for each client that never renewed what a message granted it.
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
  -- Now and then: the holders whose permits Redisson has taken back.
  if now % 64 == 0 and redis.call('HLEN', HOLDERS) > redis.call('ZCARD', TIMEOUTS) + 100 then
    for _, prefix in ipairs(redis.call('HKEYS', HOLDERS)) do
      if not redis.call('ZSCORE', TIMEOUTS, prefix .. '\0\0') then orphans[#orphans + 1] = prefix end
    end
  end
  return freed, #dead == RECLAIMS
end
