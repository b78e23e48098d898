-- grant: how a lock gets its owner. Every script that can find the lock free while somebody waits includes
-- it. Uses the keys and ARGV[1..2] of lock/acquire.lua.
-- include shared/token.lua
-- include shared/queue.lua

-- Sends a message of a kind to the client that owns the lock. The message names its owner id, and the token
-- if one is given.
local function tell_owner(kind, fields, token)
  for _, field in ipairs(fields or redis.call('HKEYS', NAME)) do
    local client, number = string.match(field, '^([^:]+):(%d+)$')
    if client then
      if token then number = number .. ' ' .. decimal(token) end
      tell(client, kind, number)
    end
  end
end

-- The fields of the lock that go when it gets its next owner.
local former = {}

-- Makes an id the owner. short: when its short lease ends, if a message grants it the lock.
--
-- The key outlives a short lease by OUTLIVES ms, so that whoever asks after the end sees that no renewal
-- came. The new owner is written before the former one goes: while a slot moves, nobody can make a key again
-- that is gone.
local OUTLIVES = 1000
local function own(id, lease, text, reserved, short)
  local token = 't' .. text
  if reserved > 0 then token = token .. '+' .. reserved end -- says too that the process hands on inside
  token = token .. '/' .. lease
  if short then
    redis.call('HSET', NAME, id, '1', 'token', token, 'short', 's' .. short)
  else
    redis.call('HSET', NAME, id, '1', 'token', token)
  end
  redis.call('PEXPIRE', NAME, lease)
  for i = #former, 1, -1 do
    local field = former[i]
    if field == id or field == 'token' or field == 'short' then table.remove(former, i) end
  end
  if not short then former[#former + 1] = 'short' end
  if former[1] then redis.call('HDEL', NAME, unpack(former)) end
end

-- 1 when somebody waits, else 0.
local function others_wait()
  if moving and moving.lacks(QUEUE) then return 0 end
  return math.min(redis.call('LLEN', QUEUE), 1)
end

-- The reply to an owner: the token alone, or {0, token, reserved, others}.
local function owner_reply(token, reserved)
  if reserved == 0 then return token end
  return {0, token, reserved, others_wait()}
end

-- The next token, for an entry that was taken from the queue. When there is none, the entry goes back to its
-- place and the script ends.
local function token_for(entry, now, block)
  local done, token, text, reserved = pcall(next_token, now, tonumber(block))
  if done then return token, text, reserved end
  redis.pcall('LPUSH', QUEUE, entry)
  redis.pcall('PEXPIRE', QUEUE, QUEUE_KEPT)
  error(token, 0)
end

-- Gives the lock to the first waiter that lives.
--
--   self    the caller's own entry, which needs no message
--   head    an entry that the caller has taken from the queue already
--   queues  the caller queues behind this grant
--
-- Returns nil when nobody waits: then the lock's key is unchanged. Returns 0 when somebody else was granted
-- the lock. Returns the token, and how many are reserved behind it, when the caller was.
--
-- All writes come before PUBLISH. Redis may refuse the first write of a script (READONLY, OOM), and then
-- nobody must have heard that he owns the lock.
local function grant(self, head, queues)
  if moving then moving.need(TOKEN) end
  local entry = head
  while true do
    entry = entry or not (moving and moving.lacks(QUEUE)) and redis.call('LPOP', QUEUE)
    if not entry then return nil end
    local client, number, lease, block = string.match(entry, '^1:([^:]+):(%d+):(%d+):(%d+)$')
    -- Nobody of ours wrote this. Redis might refuse such a lease, and the lock would have none.
    if client and #lease > 10 then client = nil end
    if client and entry == self then
      local token, text, reserved = token_for(entry, micros(), block)
      own(client .. ':' .. number, lease, text, reserved)
      return token, reserved
    end
    if client and alive(client) then
      local now = micros()
      local _, text, reserved = token_for(entry, now, block)
      local short = math.min(tonumber(lease), SHORT)
      own(client .. ':' .. number, math.max(tonumber(lease), short + OUTLIVES), text, reserved,
        decimal(math.ceil(now / 1000) + short))
      if short < SHORT then note_lease(lease) end
      -- Only a process that hands on inside needs to know whether others wait.
      local others = queues and 1 or reserved > 0 and others_wait() or 0
      tell_grant(client, 'g', number, text, reserved, others, decimal(now), short)
      return 0
    end
    entry = nil
  end
end

-- Gives a lock without an owner to the next waiter. When there is no token, the lock is free, and waiters
-- will ask.
local function hand_over(head)
  local done, token = pcall(grant, nil, head)
  if not (done and token) then redis.call('DEL', NAME) end
end

-- Ends what these ids own. When the lock is free then, it goes to the next waiter.
local function give_back(ids)
  local free = redis.call('EXISTS', NAME) == 0
  if not free then
    local held = redis.pcall('HMGET', NAME, unpack(ids))
    for i = 1, #ids do
      if held[i] then free, former = true, {ids[i]} end
    end
  end
  if free then hand_over() end
end
