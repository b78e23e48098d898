-- holders: who holds the lock, and until when. Uses what rwlock/state.lua defines.
-- include rwlock/crowd.lua

local MOST = 64 -- so many holds of one reader are looked at
local HIDDEN = 100 -- ms after which to look again for a lease that cannot be seen

-- ms until the lease of a reader ends; negative: never; nil: it is over. longest: no renewal of ours gives it
-- more than this; it is cut, as in lock/lease.lua. The leases of Redisson's readers stay as they are.
local function reader_left(id, count, longest)
  local most
  for n = 1, math.min(count, MOST) do
    local key = timeout_of(id, n)
    if undeclared and undeclared(key) then return HIDDEN end
    local left = redis.pcall('PTTL', key)
    if type(left) ~= 'number' then return HIDDEN end -- on the other side of a slot that is moving
    if left == -1 then return -1 end
    if count == 1 and longest and left > longest then
      local lease = redis.pcall('GET', key)
      lease = type(lease) == 'string' and #lease <= 10 and tonumber(lease)
      if lease and lease > 1 and left > lease then
        redis.call('PEXPIRE', key, lease)
        left = lease
      end
    end
    if left >= 0 then most = math.max(most or 0, left) end -- 0: it ends now; -2: it is over
  end
  return most
end

-- Forgets the entries of the clients of these ids, which do not react.
local unanswered = false -- the script calls the others: see shared/call.lua
local function drop_entries(ids)
  local clients = {}
  for _, id in ipairs(ids) do
    local client = string.match(id, '^([^:]+):%d+$')
    if client then clients[client], unanswered = true, true end
  end
  if not unanswered then return end
  for _, entry in ipairs(of_unresponsive(clients)) do redis.call('LREM', QUEUE, 1, entry) end
end

-- Ends the readers whose lease is over. Returns ms until the first of the others ends (negative: never), nil
-- when there are none.
local function first_reader_end(longest)
  local fields, first, live, gone = redis.call('HGETALL', NAME), nil, 0, {}
  for i = 1, #fields, 2 do
    local id, count = fields[i], tonumber(fields[i + 1])
    if count and id ~= 'mode' and not string.find(id, ':write', -6, true) then
      local left = reader_left(id, count, longest)
      if left or moving then
        live = live + 1
        if (left or HIDDEN) >= 0 then first = math.min(first or math.huge, left or HIDDEN) end
      else
        gone[#gone + 1] = id
      end
    end
  end
  if live == 0 then
    former = gone
    mode = nil
  else
    for i = 1, #gone, 1000 do redis.call('HDEL', NAME, unpack(gone, i, math.min(i + 999, #gone))) end
  end
  if gone[1] then drop_entries(gone) end
  if first then note_end(live, first) end
  return live > 0 and (first or -1) or nil
end

-- Looks who holds the lock now, and ends those whose lease is over. Returns ms until a lease ends; nil when
-- the lock is free. Then mode is nil, and the key goes with the next owner. entry: that of who asks, which
-- need not look at many readers unless it is the first who waits; nil: it looks.
local function holder_left(entry)
  local _, _, longest = state_token()
  if mode == 'read' then return known_end(entry, longest) or first_reader_end(longest) end
  if mode == 'write' then
    local left = redis.call('PTTL', NAME)
    local ours = longest and (left > longest or left == -1) and redis.call('HGET', STATE, 'writer')
    if ours and redis.call('HEXISTS', NAME, ours .. ':write') == 1 then
      redis.call('PEXPIRE', NAME, longest)
      left = longest
    end
    if left ~= -2 then return left end
    mode = nil
  end
  local short = redis.call('HGET', STATE, 'short')
  if short and short ~= '' then
    redis.call('HSET', STATE, 'short', '')
    drop_entries({short})
  end
  return nil
end

-- Sends a message of a kind to the clients that have these fields of the lock. token: the message names it.
local TOLD = 2500
local function tell_holders(kind, fields, token)
  for i = 1, math.min(#fields, TOLD) do
    local client, number = string.match(fields[i], '^([^:]+):(%d+)')
    if client then tell(client, kind, token and number .. ' ' .. token or number) end
  end
end

-- Tells those who hold the lock that others wait: w is for want. It is repeated, since a message may be lost.
-- Where there are many, each time is for others of them.
local REPEATED = 250
local function tell_want(repeated)
  tell_holders('w', redis.call('HRANDFIELD', NAME, repeated and REPEATED or TOLD))
end
