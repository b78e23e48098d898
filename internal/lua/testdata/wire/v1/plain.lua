-- plain: permits without owners, Redisson's RSemaphore. One of the two stores of semaphores.
--
-- KEYS  1 available  STRING free permits; absent: not initialised
--       2 queue, 3 token, 4 channel: see take.lua
--       5 done       prefix of what remembers repeated commands: <done>:<owner id> is a STRING, how many permits that acquire
--                    took or that release gave. It is deleted once its client says that it was answered, and expires

local KIND = 'c' -- of grant messages
local REMEMBERED = '600000' -- ms

local function done(client, number) return KEYS[5] .. ':' .. client .. ':' .. number end

-- Forgets commands of this client that were answered: they are not sent again.
local function acknowledge(client, numbers)
  for number in string.gmatch(numbers, '%d+') do redis.call('DEL', done(client, number)) end
end

local function owned(client, number)
  local n = redis.call('GET', done(client, number))
  if n then return 1, tonumber(n) end
  return nil
end

local function take(client, number, n)
  redis.call('SET', done(client, number), n, 'PX', REMEMBERED)
  redis.call('DECRBY', KEYS[1], n)
  return 1, '1'
end

local function disown(client, number)
  local n = redis.call('GET', done(client, number))
  if not n then return nil end
  redis.call('DEL', done(client, number))
  return tonumber(n)
end

local function reclaim() return 0 end
local function first_end() return -1 end
local function capacity() return math.huge end -- nobody knows how many are out
