-- grant: how a lock is owned and granted. Included by every script that can find it free while somebody waits.
-- Uses KEYS[1..3] and ARGV[1..4] of acquire.lua, and token.lua.
-- include token.lua
-- include queue.lua

-- Sends a message of this kind to the client that owns the lock, about its owner id, and the token if there is one.
local function tell_owner(kind, fields, token)
  for _, field in ipairs(fields or redis.call('HKEYS', KEYS[1])) do
    local client, number = string.match(field, '^([^:]+):(%d+)$')
    if client then
      if token then number = number .. ' ' .. decimal(token) end
      tell(client, kind, number)
    end
  end
end

-- The fields that end when somebody else owns the lock, and that of a short lease.
local former = {}

-- What is granted by message is marked with the end of its short lease. The key outlives that, so that whoever asks after it
-- finds that there was no renewal.
-- The new owner is written before the former one goes: in a slot that is moving, a key that is gone cannot be made again.
local OUTLIVES = 1000 -- ms
local function own(id, lease, text, reserved, short)
  local token = 't' .. text
  if reserved > 0 then token = token .. '+' .. reserved end -- also says that its process hands on inside: see want
  token = token .. '/' .. lease
  if short then
    redis.call('HSET', KEYS[1], id, '1', 'token', token, 'short', 's' .. short)
  else
    redis.call('HSET', KEYS[1], id, '1', 'token', token)
  end
  redis.call('PEXPIRE', KEYS[1], lease)
  for i = #former, 1, -1 do
    local field = former[i]
    if field == id or field == 'token' or field == 'short' then table.remove(former, i) end
  end
  if not short then former[#former + 1] = 'short' end
  if former[1] then redis.call('HDEL', KEYS[1], unpack(former)) end
end

local function others_wait()
  if moving and moving.lacks(KEYS[2]) then return 0 end
  return math.min(redis.call('LLEN', KEYS[2]), 1)
end

-- The reply to an owner: the token alone, or {0, token, reserved, others}.
local function owner_reply(token, reserved)
  if reserved == 0 then return token end
  return {0, token, reserved, others_wait()}
end

-- The next token for an entry that was taken from the queue. It keeps its place when none is to be had.
local function token_for(entry, now, block)
  local done, token, text, reserved = pcall(next_token, now, tonumber(block))
  if done then return token, text, reserved end
  redis.pcall('LPUSH', KEYS[2], entry)
  redis.pcall('PEXPIRE', KEYS[2], QUEUE_KEPT)
  error(token, 0)
end

-- Gives the lock to the first waiter that lives. The head may be passed in as already taken from the queue; self is the
-- caller's own entry, which needs no message. Returns the token when that is the caller, with what is reserved behind it,
-- 0 when it is somebody else, and nil when nobody waits: then nothing has been done to the lock's key. queues: the caller
-- queues behind this.
-- The order matters: the writes come first and PUBLISH comes last, because a script that is refused its first write
-- (READONLY, OOM) must not have told anybody that he owns the lock.
local function grant(self, head, queues)
  if moving then moving.need(KEYS[3]) end
  local entry = head
  while true do
    entry = entry or not (moving and moving.lacks(KEYS[2])) and redis.call('LPOP', KEYS[2])
    if not entry then return nil end
    local client, number, lease, block = string.match(entry, '^1:([^:]+):(%d+):(%d+):(%d+)$')
    if client and #lease > 10 then client = nil end -- nobody's: Redis may not take it, and then the lock had none
    if client and entry == self then
      local token, text, reserved = token_for(entry, micros(), block)
      own(client .. ':' .. number, lease, text, reserved)
      return token, reserved
    end
    if client and alive(client) then
      local now = micros()
      local _, text, reserved = token_for(entry, now, block)
      local short = math.min(tonumber(lease), SHORT)
      own(client .. ':' .. number, math.max(tonumber(lease), short + OUTLIVES), text, reserved, decimal(math.ceil(now / 1000) + short))
      if short < SHORT then note_lease(lease) end
      -- Only a process that hands on inside needs to know whether others wait.
      local others = queues and 1 or reserved > 0 and others_wait() or 0
      tell_grant(client, 'g', number, text, reserved, others, decimal(now), short)
      return 0
    end
    entry = nil
  end
end

-- Gives a lock that nobody owns any more to the next waiter. When no token is to be had it is free, and who waits will ask.
local function hand_over(head)
  local done, token = pcall(grant, nil, head)
  if not (done and token) then redis.call('DEL', KEYS[1]) end
end

-- Ends what these ids own, and gives a lock that this makes free to the next waiter.
local function give_back(ids)
  local free = redis.call('EXISTS', KEYS[1]) == 0
  if not free then
    local held = redis.pcall('HMGET', KEYS[1], unpack(ids))
    for i = 1, #ids do
      if held[i] then free, former = true, {ids[i]} end
    end
  end
  if free then hand_over() end
end
