-- grant: how a lock gets its owner. Every script that can find the lock free while somebody waits includes
-- it. Uses the keys and ARGV[1..2] of lock/acquire.lua.
-- keys QUEUE
-- include shared/token.lua
-- include shared/inbox.lua
-- redisson -- include lock/fair.lua
-- redisson -- include shared/turns.lua

-- The fields of the lock that go when it gets its next owner.
local former = {}

-- What a value says of reserved tokens. lingers: l when the owner may linger, else empty.
local function mark_of(reserved, lingers)
  if reserved > 0 or lingers == 'l' then return '+' .. reserved .. lingers end
  return ''
end

-- Makes the caller's id the owner. lingers: as in mark_of.
local function own(id, lease, token, reserved, lingers)
  redis.call('HSET', NAME, id, 't' .. token .. mark_of(reserved, lingers) .. '/' .. lease)
  redis.call('PEXPIRE', NAME, lease)
  for _, field in ipairs(former) do
    if field ~= id then redis.call('HDEL', NAME, field) end
  end
end

-- 1 when somebody waits, else 0.
local function others_wait()
  -- redisson if redisson_waits() then return 1 end
  if moving and moving.lacks(QUEUE) then return 0 end
  return math.min(redis.call('LLEN', QUEUE), 1)
end

-- Gives the lock to the first waiter that lives.
--
--   self    the caller's own entry, which needs no message
--   head    an entry that the caller has taken from the queue already
--   queues  the caller queues behind this grant
--
-- Returns nil when nobody waits: then the lock's key is unchanged. Returns false when somebody else was
-- granted the lock. Returns the token, and how many are reserved behind it, when the caller was.
-- When there is no token, the entry goes back to its place and the script ends.
local function grant(self, head, queues)
  if moving then moving.need(TOKEN) end
  local entry = head
  while true do
    entry = entry or not (moving and moving.lacks(QUEUE)) and redis.call('LPOP', QUEUE)
    if not entry then return nil end
    local client, number, lease, block, lingers = string.match(entry, '^1:([^:]+):(%d+):(%d+):(%d+)(l?)$')
    -- Nobody of ours wrote this, if there is no match. Redis might refuse such a lease, and the lock would
    -- have none.
    if client and #lease <= 10 and (entry == self or alive(client)) then
      local now = clock()
      -- redisson block = within_turns(tonumber(block))
      local done, token, reserved = pcall(next_token, now, tonumber(block))
      if not done then
        redis.pcall('LPUSH', QUEUE, entry)
        redis.pcall('PEXPIRE', QUEUE, QUEUE_KEPT)
        error(token, 0)
      end
      if entry == self then
        own(client .. ':' .. number, lease, token, reserved, lingers)
        return token, reserved
      end
      local short, ms = '2000', lease
      if #lease < 5 then
        ms = math.max(tonumber(lease), math.min(tonumber(lease), SHORT) + OUTLIVES)
        if tonumber(lease) < SHORT then
          short = lease
          -- inline shared/pace.lua
          note_lease(lease)
        end
      end
      -- Only a process that hands on inside needs to know whether others wait.
      local others = queues and 1 or reserved > 0 and others_wait() or 0
      local mark = mark_of(reserved, lingers)
      local inbox = INBOX .. client
      -- inline lock/hand.lua
      return false
    end
    entry = nil
  end
end

-- redisson -- include lock/leave.lua

-- Gives a lock without an owner to the next waiter. When there is no token, the lock is free, and waiters
-- will ask.
local function hand_over(head)
  -- redisson if leave_free(head) then return end
  local done, token = pcall(grant, nil, head)
  if not done or token == nil then redis.call('DEL', NAME) end
  -- redisson if (not done or token == nil) and redisson_waits() then announce('00') end
end
