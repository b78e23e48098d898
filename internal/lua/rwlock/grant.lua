-- grant: gives the lock to whoever is next. Every script that can find it free for somebody who waits
-- includes this file. Uses what rwlock/state.lua defines.
-- include rwlock/state.lua

local RUN = 100 -- so many readers are granted by one script at most: the first who is left asks for the rest

-- 1 when somebody waits, else 0. It is asked after what was done, and so it must not fail: nobody waits in a
-- queue that is foreign data, or at the other side of a slot that is moving.
local function others_wait()
  local length = redis.pcall('LLEN', QUEUE)
  return type(length) == 'number' and math.min(length, 1) or 0
end

-- The reply to an owner: the token alone, or {0, token, reserved, others}.
local function owner_reply(token, reserved)
  local others = (mode == 'read' or reserved > 0) and others_wait() or 0
  -- redisson if redisson_waits() then others = 1 end
  if reserved == 0 and others == 0 then return token end
  return {0, token, reserved, others}
end

-- Gives the lock to the first who live: one writer, or all readers up to the next writer.
--
--   self    the caller's own entry, which needs no message
--   queues  the caller queues behind this grant
--
-- Returns how many were granted the lock. Where the caller was one of them, its token and how many are
-- reserved behind it follow.
--
-- All writes come before PUBLISH. Redis may refuse the first write of a script (READONLY, OOM), and then
-- nobody must have heard that he owns the lock.
local function serve(self, queues)
  local granted, messages, token, reserved, left_out = 0, {}, nil, nil, false
  local now = clock()
  while granted < RUN do
    local entry = not (moving and moving.lacks(QUEUE)) and redis.call('LINDEX', QUEUE, 0)
    if not entry then break end
    local client, number, lease, demand = string.match(entry, '^1:([^:]+):(%d+):(%d+):(%d+s?)$')
    if client and (#lease > 10 or tonumber(lease) == 0) then client = nil end -- nobody of ours wrote this
    if client and mode == 'write' then break end -- it fits nobody
    local reads = client and is_read(demand)
    -- Also a writer for which it is too soon must live: the readers behind it may fit.
    local lives = client and (entry == self or alive(client))
    if lives and not fits(reads) then break end
    -- A stray copy may have queued a reader twice. It has its lease, which must not be shortened.
    if lives and mode == 'read' and redis.call('HEXISTS', NAME, client .. ':' .. number) == 1 then
      lives = false
    end
    if not lives then
      redis.call('LPOP', QUEUE)
    else
      local id, ms = client .. ':' .. number, lease
      if reads and undeclared and undeclared(timeout_of(id)) then
        left_out = true
        break
      end
      if moving then
        if reads and entry ~= self then break end -- nobody knows whether its timeout may be made here
        moving.need(TOKEN)
        moving.need(STATE)
      end
      -- First: Redis never refuses it for lack of memory, nor what follows; and it removes nothing.
      if granted == 0 then redis.call('LTRIM', QUEUE, 0, -1) end
      if entry ~= self then ms = math.min(tonumber(lease), SHORT) end
      -- When there is no token, the script ends here, and the entry stays.
      local own_token, text, own_reserved = nil, nil, 0
      if reads then
        own_token = own_read(id, lease, ms)
        text = own_token
      else
        -- redisson demand = within_turns(tonumber(demand))
        text, own_reserved = next_token(now, tonumber(demand))
        own_token = text
        own_write(id, lease, text, own_reserved, ms)
      end
      redis.call('LPOP', QUEUE)
      granted = granted + 1
      if entry == self then
        token, reserved = own_token, own_reserved
      else
        if ms < SHORT then note_lease(lease) end
        messages[#messages + 1] = {client, number, text, own_reserved, ms}
      end
      if not reads then break end
    end
  end
  if granted > 0 and mode == 'read' then redis.pcall('HDEL', STATE, 'ends') end -- see rwlock/crowd.lua
  local others = granted > 0 and (queues and 1 or others_wait()) or 0
  -- redisson if granted > 0 and redisson_waits() then others = 1 end
  for _, m in ipairs(messages) do tell_grant(m[1], 'r', m[2], m[3], m[4], others, now, m[5]) end
  if left_out or granted == RUN and others == 1 then
    local client, number = string.match(redis.call('LINDEX', QUEUE, 0) or '', '^1:([^:]+):(%d+):')
    if client then tell(client, 'a', number) end
  end
  return granted, token, reserved
end

-- Gives a lock whose owners are all in former to the next who wait. When there are none, or there is no
-- token, the lock is free, and waiters will ask.
local function hand_over()
  mode = nil
  -- redisson local ended, left_free = began, leave_free()
  -- redisson if not left_free then
  local done, granted = pcall(serve)
  if done and granted > 0 then return end
  -- redisson end
  drop_former()
  redis.call('DEL', NAME)
  -- redisson began = ended
  -- redisson if ended and redisson_waits() then announce_release() end
end

-- Ends what these ids own, and serves those who may have it now.
local function give_back(ids)
  local wrote, seen = false, {}
  for _, id in ipairs(mode and ids or {}) do
    for _, field in ipairs({id, id .. ':write'}) do
      if not seen[field] and redis.call('HEXISTS', NAME, field) == 1 then
        former[#former + 1], seen[field] = field, true
        wrote = wrote or field ~= id
      end
    end
  end
  if not mode or former[1] and redis.call('HLEN', NAME) == #former + 1 then return hand_over() end
  if wrote then -- a writer of Redisson that reads as well
    redis.call('HSET', NAME, 'mode', 'read')
    mode = 'read'
  end
  drop_former()
  pcall(serve)
end
