-- plain: permits without owners, Redisson's RSemaphore. One of the two stores of semaphores: what of a transaction (permits.lua)
-- depends on it.
--
-- KEYS  1 available  STRING free permits; absent: not initialised
--       2 queue, 3 token, 4 channel: see trade.lua
--       5 done       prefix of what remembers repeated commands: <done>:<owner id> is a STRING, how many permits that acquire
--                    took or that release gave. It is deleted once its client says that it was answered, and expires

local KIND = 'c' -- of grant messages
local COUNTS_HELD = false -- nobody knows how many permits are out
local REMEMBERED = '600000' -- ms
local records, changed = {}, {} -- by the key that remembers
local answered = {}

local function done(client, number) return KEYS[5] .. ':' .. client .. ':' .. number end

-- Forgets commands of a client that were answered: they are not sent again.
local function acknowledge(client, numbers)
  for number in string.gmatch(numbers, '%d+') do answered[#answered + 1] = done(client, number) end
end

local function prefetch(owners)
  local keys = {}
  for _, owner in ipairs(owners) do
    local key = KEYS[5] .. ':' .. (string.match(owner, '^[^:]+:%d+') or '')
    if records[key] == nil then keys[#keys + 1] = key end
  end
  if #keys == 0 then return end
  local found = redis.call('MGET', unpack(keys))
  for i, key in ipairs(keys) do
    local n = tonumber(found[i] or '')
    records[key] = n and {key = key, was = n, n = n, token = '1'} or false
  end
end

local function holding(client, number)
  local key = done(client, number)
  if records[key] == nil then prefetch({client .. ':' .. number}) end
  local record = records[key]
  return record and record.n > 0 and record or nil
end

local function change(record, n)
  record.n = n
  changed[record.key] = record
end

local function take(client, number, n)
  local key = done(client, number)
  local record = {key = key, was = 0, n = 0, token = '1'}
  records[key] = record
  change(record, n)
  return record
end

local function extend() return true end
local function reclaim() return 0 end
local function first_end() return -1 end
local function out() return math.huge end

local function write()
  local gone = answered
  for key, record in pairs(changed) do
    if record.n > 0 then
      redis.call('SET', key, record.n, 'PX', REMEMBERED)
    elseif record.was > 0 then
      gone[#gone + 1] = key
    end
  end
  if #gone > 0 then redis.call('DEL', unpack(gone)) end
  return nil
end
