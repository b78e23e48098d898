-- grant: included by every script that can find the lock free while somebody waits.
-- Uses KEYS[1..3] and ARGV[1..4] of acquire.lua, and token.lua.

-- How long a grant by message lasts until its first renewal, in ms: what a process that stopped while it waited can cost.
-- No client asks later than this after its last question, so only a lease that ends sooner has to be announced.
local SHORT = 2000

local numsub = ARGV[3] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
local counted = {}

-- Whether the server sees a subscriber of this client's inbox. PUBLISH cannot be the test: on a primary it answers 0
-- although a subscriber of a replica hears the message, and a message that is out cannot be called back.
local function alive(client)
  if counted[client] == nil then
    counted[client] = redis.call('PUBSUB', numsub, ARGV[2] .. client)[2] > 0
  end
  return counted[client]
end

-- Sends a message of this kind to the client that owns the lock, about its owner id, and the token if there is one.
local function tell_owner(kind, fields, token)
  for _, field in ipairs(fields or redis.call('HKEYS', KEYS[1])) do
    local client, number = string.match(field, '^([^:]+):(%d+)$')
    if client then
      if token then number = number .. ' ' .. decimal(token) end
      redis.call(ARGV[3], ARGV[2] .. client, '1 ' .. kind .. ' ' .. number .. ' ' .. KEYS[1])
    end
  end
end

-- Tells the first waiter whose inbox hears it that the lease now ends in ms. A hint: whoever misses it asks in time anyway.
local function tell_next(ms)
  for i = 0, 7 do
    local entry = redis.call('LINDEX', KEYS[2], i)
    if not entry then return end
    local client, number = string.match(entry, '^1:([^:]+):(%d+):')
    if client and redis.call(ARGV[3], ARGV[2] .. client, '1 l ' .. number .. ' ' .. ms .. ' ' .. KEYS[1]) > 0 then
      return
    end
  end
end

local function own(id, lease, text, reserved, short)
  local token = 't' .. text
  if reserved > 0 then token = token .. '+' .. reserved end -- also says that its process hands on inside: see want
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
      own(client .. ':' .. number, lease, text, reserved, decimal(math.ceil(now / 1000) + short))
      if short < SHORT then tell_next(short) end
      -- Only a process that hands on inside needs to know whether others wait.
      local others = queues and 1 or reserved > 0 and redis.call('EXISTS', KEYS[2]) or 0
      redis.call(ARGV[3], ARGV[2] .. client,
        string.format('1 g %s %s %d %d %.0f %d %s', number, text, reserved, others, now, short, KEYS[1]))
      return 0
    end
    entry = redis.call('LPOP', KEYS[2])
  end
  redis.call('DEL', KEYS[1])
  return nil
end
