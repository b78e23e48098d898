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

-- What is granted by message is marked with the end of its short lease. The key outlives that, so that whoever asks after it
-- finds that there was no renewal.
local OUTLIVES = 1000 -- ms
local function own(id, lease, text, reserved, short)
  local token = 't' .. text
  if reserved > 0 then token = token .. '+' .. reserved end -- also says that its process hands on inside: see want
  token = token .. '/' .. lease
  redis.call('DEL', KEYS[1])
  if short then
    redis.call('HSET', KEYS[1], id, '1', 'token', token, 'short', 's' .. short)
  else
    redis.call('HSET', KEYS[1], id, '1', 'token', token)
  end
  redis.call('PEXPIRE', KEYS[1], lease)
end

-- The reply to an owner: the token alone, or {0, token, reserved, others}.
local function owner_reply(token, reserved)
  if reserved == 0 then return token end
  return {0, token, reserved, math.min(redis.call('LLEN', KEYS[2]), 1)}
end

-- Gives the lock to the first waiter that lives. The head may be passed in as already taken from the queue; self is the
-- caller's own entry, which needs no message. Returns the token when that is the caller, with what is reserved behind it,
-- 0 when it is somebody else, and nil when nobody waits: then the lock's key is gone. queues: the caller will queue after this.
-- The order matters: the writes come first and PUBLISH comes last, because a script that is refused its first write
-- (READONLY, OOM) must not have told anybody that he owns the lock.
local function grant(self, head, queues)
  local entry = head or redis.call('LPOP', KEYS[2])
  while entry do
    local client, number, lease, block = string.match(entry, '^1:([^:]+):(%d+):(%d+):(%d+)$')
    if entry == self then
      local token, text, reserved = next_token(micros(), tonumber(block))
      own(client .. ':' .. number, lease, text, reserved)
      return token, reserved
    end
    if client and alive(client) then
      local now = micros()
      local _, text, reserved = next_token(now, tonumber(block))
      local short = math.min(tonumber(lease), SHORT)
      own(client .. ':' .. number, math.max(tonumber(lease), short + OUTLIVES), text, reserved, decimal(math.ceil(now / 1000) + short))
      if short < SHORT then note_lease(lease) end
      -- Only a process that hands on inside needs to know whether others wait.
      local others = queues and 1 or reserved > 0 and redis.call('EXISTS', KEYS[2]) or 0
      tell_grant(client, 'g', number, text, reserved, others, decimal(now), short)
      return 0
    end
    entry = redis.call('LPOP', KEYS[2])
  end
  redis.call('DEL', KEYS[1])
  return nil
end

-- Ends what these ids own, and gives a lock that this makes free to the next waiter.
local function give_back(ids)
  local free = redis.call('EXISTS', KEYS[1]) == 0
  if not free then
    local held = redis.pcall('HMGET', KEYS[1], unpack(ids))
    for i = 1, #ids do free = free or held[i] end
  end
  if free and not pcall(grant, nil) then -- no token is to be had: the lock is free, and who waits will ask
    redis.call('DEL', KEYS[1])
  end
end
