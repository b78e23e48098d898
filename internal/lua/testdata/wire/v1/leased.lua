-- leased: permits that have a holder and a lease, in the layout of Redisson's RPermitExpirableSemaphore. One of the two stores
-- of semaphores: what of a transaction (permits.lua) depends on it.
--
-- KEYS  1 available  STRING free permits; negative after a shrink below what is held; absent: not initialised
--       2 queue, 3 token, 4 channel: see trade.lua
--       5 done       prefix of what remembers repeated commands
--       6 timeouts   ZSET   permit (16 raw bytes) -> ms since the epoch when its lease ends; Redisson's own may never end
--       7 holders    HASH   the first 14 bytes of an owner's permits -> see parse_holder; with a time to live
-- include holder.lua

local KIND = 's' -- of grant messages
local COUNTS_HELD = true
local NEVER = 922337203685477
local ms = math.floor(now / 1000)
local records, changed = {}, {} -- by the first 14 bytes

local function acknowledge() end -- owners are remembered for as long as they hold

local function parse_record(prefix, text)
  local n, token, short, client = parse_holder(text)
  records[prefix] = n and {
    prefix = prefix, was = n, n = n, token = token, short = short, client = client, rest = string.match(text, '[^:]+:%d+$'),
  } or false
  return records[prefix]
end

-- Reads what many owners hold at once.
local function prefetch(owners)
  local prefixes = {}
  for _, owner in ipairs(owners) do
    local client, number = string.match(owner, '^([^:]+):(%d+)')
    local prefix = client and base(client, number)
    if prefix and records[prefix] == nil then prefixes[#prefixes + 1] = prefix end
  end
  if #prefixes == 0 then return end
  local held = redis.call('HMGET', KEYS[7], unpack(prefixes))
  for i, prefix in ipairs(prefixes) do parse_record(prefix, held[i]) end
end

-- What an owner holds, also when its lease is over and nobody has taken it back; nil when it holds nothing.
local function holding(client, number)
  local prefix = base(client, number)
  if records[prefix] == nil then prefetch({client .. ':' .. number}) end
  local record = records[prefix]
  return record and record.n > 0 and record or nil
end

local function change(record, n)
  record.n = n
  changed[record.prefix] = record
end

-- Gives permits to an owner that has none.
local function take(client, number, n, lease, short)
  local prefix = base(client, number)
  local was = records[prefix] and records[prefix].was or 0
  local record = {
    prefix = prefix, was = was, n = 0, token = decimal(next_number()), short = short and '1' or '0', client = client,
    rest = client .. ':' .. number, ends = ms + 1 + lease,
  }
  records[prefix] = record
  change(record, n)
  return record
end

-- Gives an owner its whole lease from now on, and returns false when it is over already.
local function extend(record, lease)
  if not record.ends then
    local ends = redis.call('ZSCORE', KEYS[6], record.prefix .. '\0\0')
    if not ends or tonumber(ends) <= ms then return false end
  end
  record.ends, record.short = ms + 1 + lease, '0'
  change(record, record.n)
  return true
end

local others = {} -- permits that are not ours, to be removed
local orphans = {} -- holders whose permits Redisson has taken back

local function find_orphans()
  if redis.call('HLEN', KEYS[7]) <= redis.call('ZCARD', KEYS[6]) + 100 then return end
  for _, prefix in ipairs(redis.call('HKEYS', KEYS[7])) do
    if not redis.call('ZSCORE', KEYS[6], prefix .. '\0\0') then orphans[#orphans + 1] = prefix end
  end
end

-- Takes back permits whose lease is over, a thousand at most, and returns how many. unresponsive is called for each client that
-- never renewed what it was granted by message.
local function reclaim(unresponsive)
  local dead = redis.call('ZRANGEBYSCORE', KEYS[6], 0, decimal(ms), 'LIMIT', 0, 1000)
  local freed = 0
  for _, permit in ipairs(dead) do
    local prefix = string.sub(permit, 1, 14)
    local record = records[prefix]
    if record == nil then record = parse_record(prefix, redis.call('HGET', KEYS[7], prefix)) end
    if not record then
      others[#others + 1] = permit
      freed = freed + 1
    elseif record.n > 0 and not record.ends then
      freed = freed + record.n
      change(record, 0)
      if record.short == '1' then unresponsive(record.client) end
    end
  end
  if now % 64 == 0 then find_orphans() end -- now and then
  return freed
end

-- ms until the first lease ends; -1: never.
local function first_end()
  local score = tonumber(redis.call('ZRANGE', KEYS[6], 0, 0, 'WITHSCORES')[2])
  if not score or score >= NEVER then return -1 end
  return math.max(0, score - ms)
end

-- How many permits are held.
local card
local function out()
  card = card or redis.call('ZCARD', KEYS[6])
  local n = card - #others
  for _, record in pairs(changed) do n = n + record.n - record.was end
  return n
end

-- Writes the changes, and returns by how much more permits are free then.
local function write()
  local set, names, del, add, rem = {}, {}, {}, {}, {}
  for prefix, record in pairs(changed) do
    if record.n > 0 then
      names[#names + 1] = prefix
      set[#set + 1] = prefix
      set[#set + 1] = record.n .. ':' .. record.token .. ':' .. record.short .. ':' .. record.rest
      if record.ends then append_permits(add, prefix, 0, record.n, decimal(record.ends)) end
    elseif record.was > 0 then
      del[#del + 1] = prefix
    end
    append_permits(rem, prefix, record.n, record.was)
  end
  for _, permit in ipairs(others) do rem[#rem + 1] = permit end
  for _, prefix in ipairs(orphans) do
    if not changed[prefix] then del[#del + 1] = prefix end
  end
  many('HDEL', KEYS[7], del)
  many('HSET', KEYS[7], set)
  local ok, freed = pcall(function() return many('ZREM', KEYS[6], rem) - many('ZADD', KEYS[6], add) end)
  if not ok then -- foreign data under that name
    many('HDEL', KEYS[7], names)
    error(freed)
  end
  if #set > 0 then
    redis.call('PEXPIRE', KEYS[7], HOLDERS_KEPT)
    local ttl = redis.call('PTTL', KEYS[1])
    if ttl > 0 then redis.call('PEXPIRE', KEYS[6], ttl) end -- it is Redisson that gave it one
  end
  return freed
end
