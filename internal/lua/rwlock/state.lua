-- state: what a read-write lock is in Redis, who holds it, and how they begin to. Every script of a
-- read-write lock includes this file.
--
-- NAME   HASH   mode -> read | write
--               <owner id> -> 1               a reader; Redisson's readers count their holds
--               <owner id>:write -> 1         the writer
--        There is no other field: Redisson counts the fields, and takes numbers for readers.
-- QUEUE  LIST   of 1:<client id>:<number>:<lease in ms>:<demand>; the head is next. The demand of
--               a reader is 0s. That of a writer is how many tokens to reserve for further holds
--               of its process
-- TOKEN  STRING last number handed out or reserved
-- STATE  HASH   token -> t<number>+<reserved>/<longest lease in ms>: of the last write hold, or of
--                        those who began to read after that
--               short -> owner id of a writer that a message granted the lock, until its first
--                        renewal; otherwise empty or missing
--               writer -> owner id of the last writer of ours; empty or missing once it has given the
--                         lock back
--               watched -> owner id of a writer that is to be told when others want the lock; any other
--                         id counts for nothing; may be missing
--               ends -> when the first lease of many readers ends, in ms since the epoch, as far as
--                         that is known: see rwlock/crowd.lua; may be missing
-- {N}:<owner id>:rwlock_timeout:<n>
--        STRING exists as long as the lease of that reader's nth hold. Ours have one. It says how
--               long the lease is, in ms; one of Redisson's says 1
-- ARGV  1 owner id, 2 floor: as in lock/acquire.lua
-- keys QUEUE TOKEN STATE LEASES
-- include shared/token.lua
-- include shared/value.lua
-- include shared/queue.lua
-- include shared/declared.lua
-- redisson -- include shared/keptback.lua
-- redisson local next_fair
-- redisson -- include shared/turns.lua

local mode = redis.call('HGET', NAME, 'mode')
if mode ~= 'read' and mode ~= 'write' then
  if mode or redis.call('EXISTS', NAME) == 1 then
    return {err = 'WRONGTYPE ' .. NAME .. ' holds data that is not a read-write lock'}
  end
  mode = nil -- nobody holds it
end
-- redisson -- include rwlock/leave.lua

-- The key whose time to live is the lease of a reader's nth hold.
local function timeout_of(owner, n) return LEASES .. owner .. ':rwlock_timeout:' .. (n or '1') end
if undeclared then
  -- inline rwlock/declared.lua
end

-- The token field: its number, how many are reserved behind it, and the longest lease.
local function state_token() return parse_token(redis.call('HGET', STATE, 'token')) end

-- What that field holds. text: the number in decimal digits.
local function token_field(text, reserved, longest)
  -- The reserved ones say too that the process hands on inside.
  return 't' .. text .. (reserved > 0 and '+' .. reserved or '') .. '/' .. longest
end

-- Fields that go when the next owner is written. The new owner is written before them: while a slot moves,
-- nobody can make a key again that is gone.
local former = {}

-- Whether a writer has not given the lock back: its lease is over, or Redis has lost it.
local function is_at_large(writer)
  if not writer or writer == '' or string.find(writer, ':rest', -5, true) then return false end
  for _, field in ipairs(former) do
    if field == writer .. ':write' then return false end -- this script takes it back
  end
  return true
end

-- The token of readers: that of those who read already, or of the writer who goes on reading, with all that
-- its process may have used. Where nobody reads it is a new one: a failover may have lost a writer whose
-- token was greater than what is known here. So it is where none is known any more, and where a writer has
-- not given the lock back: what that one still writes must have a smaller token than theirs.
local function read_token(lease)
  local state = redis.call('HMGET', STATE, 'token', 'writer', 'short')
  local number, reserved, longest = parse_token(state[1])
  if reserved > 0 then number = decimal(number + reserved) end
  if mode ~= 'read' or not number or tonumber(number) < tonumber(ARGV[2]) or is_at_large(state[2]) then
    number, longest = next_token(clock()), nil
  end
  if not longest or longest < tonumber(lease) or (state[3] or '') ~= '' then
    redis.call('HSET', STATE, 'token', token_field(number, 0, lease), 'writer', '', 'short', '')
    redis.call('PEXPIRE', STATE, DAY)
  end
  return number
end

-- Gives the lock's key so many ms to live, or leaves it more if others read: it lives as long as the reader
-- with the longest lease.
local function keep(ms)
  local left = redis.call('PTTL', NAME)
  if not mode or left >= 0 and left < tonumber(ms) then redis.call('PEXPIRE', NAME, ms) end
end

-- owner: the field of the next owner, if it is known: the same id may own the lock again.
local function drop_former(owner)
  for i = #former, 1, -1 do
    if former[i] == owner then table.remove(former, i) end
  end
  for i = 1, #former, 1000 do redis.call('HDEL', NAME, unpack(former, i, math.min(i + 999, #former))) end
  for _, field in ipairs(former) do
    local writer = string.match(field, '^(.*):write$')
    if not writer then
      local timeout = timeout_of(field)
      -- One on the other side of a slot that is moving expires, and so does one that was not declared.
      if not (undeclared and undeclared(timeout)) then redis.pcall('DEL', timeout) end
    elseif redis.pcall('HGET', STATE, 'writer') == writer then
      redis.pcall('HSET', STATE, 'writer', '', 'short', '') -- it has given the lock back
    end
  end
  former = {}
end

-- Makes an id a reader, and returns its token. ms: until its lease ends.
local function own_read(id, lease, ms)
  if moving then moving.need(timeout_of(id)) end
  local token = read_token(lease)
  redis.call('SET', timeout_of(id), lease, 'PX', ms) -- first: while the slot moves it may be refused
  redis.call('HSET', NAME, 'mode', 'read', id, '1')
  keep(ms == lease and ms or ms + OUTLIVES)
  mode = 'read'
  drop_former(id)
  return token
end

-- Makes an id the writer. ms: until its lease ends; less than the lease when a message grants it the lock.
local function own_write(id, lease, text, reserved, ms)
  local token = token_field(text, reserved, lease)
  -- The state first: foreign data in its place must not leave a writer that nobody knows of.
  redis.call('HSET', STATE, 'token', token, 'short', ms == lease and '' or id, 'writer', id)
  redis.call('PEXPIRE', STATE, DAY)
  redis.call('HSET', NAME, 'mode', 'write', id .. ':write', '1')
  redis.call('PEXPIRE', NAME, ms)
  mode = 'write'
  drop_former(id .. ':write')
end

-- Whether the lock is to be granted to this demand now.
local function fits(reads)
  -- redisson if is_theirs() then return false end
  return not mode or reads and mode == 'read'
end

local function is_read(demand) return string.sub(demand, -1) == 's' end
