-- plain: the store of permits without owners: Redisson's RSemaphore. One of the two stores of semaphores:
-- permit/transaction.lua says what a store does. A record is what one acquire took, or one release gave.
--
-- NAME  STRING free permits; absent: not initialised
-- QUEUE, TOKEN and CHANNEL: see permit/trade.lua
-- DONE  prefix of the records: <done>:<owner id> is a STRING, how many permits that acquire took
--       or that release gave. It is deleted once its client says that it was answered, or it
--       expires
-- include permit/begin.lua
-- include shared/declared.lua

local KIND = 'c'
local COUNTS_HELD = false -- nobody knows how many permits are out
local REMEMBERED = '600000' -- ms
local records, changed = {}, {} -- by owner id
local answered = {}

-- Commands that were answered are not sent again.
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

-- Asks for the records of those who wait, before the caller counts a turn. What is wrong with the queue is
-- found out later.
local function foresee(look)
  if undeclared and pcall(look, 1) == false and unnamed then error(unnamed) end
end
local FEW, MANY, DROPS = 2, 500, 20000
-- A script that has to ask for keys asks for many at once, and for no more than a few calls can.
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
