-- permits: a transaction on a semaphore, whichever its store is: what it finds is read once, and changed here; commit writes it
-- and sends the messages. So many requests share the commands that they cost, and nothing is written by a script that fails
-- before, nor told by one whose writes are refused (READONLY, OOM).
-- Uses the store, KEYS[1..4] and ARGV[1..4] of trade.lua.
-- include token.lua

local now = micros()

-- Runs a command on any number of arguments, and returns the sum of its replies.
local function many(command, key, list)
  local sum = 0
  for i = 1, #list, 1000 do
    sum = sum + redis.call(command, key, unpack(list, i, math.min(i + 999, #list)))
  end
  return sum
end

-- The next token or sequence number: see next_token, which does the same with fewer commands for one.
local last
local function next_number()
  if not last then
    local before = tonumber(redis.call('GET', KEYS[3]) or '0')
    if not (before and before >= 0 and before < 9007199254740991) then
      error('WRONGTYPE ' .. KEYS[3] .. ' holds no fencing token')
    end
    last = math.max(before, tonumber(ARGV[4]))
  end
  last = math.max(last + 1, now)
  return last
end

-- include store.lua

-- In a slot that is moving: ends the script unless it can do all that it may have to, but for the queue.
local function ready()
  if not moving then return end
  moving.need(KEYS[3])
  for i = 6, #KEYS do moving.need(KEYS[i]) end
end

-- Whether anybody waits, as far as can be seen.
local function queued()
  if moving then return not moving.lacks(KEYS[2]) end
  return redis.call('EXISTS', KEYS[2]) == 1
end

-- The free permits, or nil when nobody has initialised the semaphore.
local free = redis.call('GET', KEYS[1])
if free and not (#free <= 11 and string.find(free, '^-?%d+$')) then
  error('WRONGTYPE ' .. KEYS[1] .. ' holds data that is not a semaphore')
end
free = free and tonumber(free) or nil
local found = free   -- what Redis has
local bonus = 0      -- by how much it changes beside what is taken and given back
local given = false  -- somebody gave permits back
local queue          -- what line.lua knows of it; nil while nobody waits, as far as is known

local function add(n)
  if free then free = free + n end
  given = given or n > 0
end

-- How many permits there are, held or free.
local function capacity() return (free or 0) + out() end

-- Ends what an owner has but for some permits, and reports whether it had any.
local function disown(owner, keep)
  local record = holding(owner)
  if not record then return false end
  if keep < record.n then -- or it is a late copy of a partial release
    add(record.n - keep)
    change(record, keep)
  end
  return true
end

-- Writes all that was changed, then tells whom it concerns.
local function commit()
  -- Giving back is not refused when memory is short: this command is not, nor is what follows.
  if given then redis.pcall('PEXPIRE', KEYS[2], '60000') end
  if last then redis.call('SET', KEYS[3], decimal(last), 'PX', DAY) end
  local freed = write()
  if found then
    local change = freed and freed + bonus or free - found
    if change ~= 0 then free = redis.call('INCRBY', KEYS[1], decimal(change)) end
  elseif free then
    redis.call('SET', KEYS[1], decimal(free))
  end
  if queue then queue.commit() end
  if given and free and free > 0 then redis.call(ARGV[3], KEYS[4], free) end -- Redisson's waiters try again
end

-- What is needed only when somebody waits, or has to.
local function open_queue()
  if queue then return queue end
  -- include line.lua
  return queue
end

-- Grants what is free to those who wait, if there are any.
local function grant()
  if queue or queued() then open_queue().grant() end
end

-- For leave.lua: ends what these ids hold, and grants what that makes free.
local function give_back(ids)
  ready()
  prefetch(ids)
  for _, id in ipairs(ids) do disown(id, 0) end
  pcall(grant) -- foreign data under the name of a companion does not keep permits from being given back
  commit()
end
