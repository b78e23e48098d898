-- inspect: who holds the lock, and who waits for it. Reads only.
--
-- Keys  as in rwlock/state.lua
-- ARGV  1 how many entries of the queue to list
-- Reply as of lock/inspect.lua. The owner is the writer, with its :write, or one of the readers; ms until the
--       lease of the writer ends, or the last of the readers
-- keys QUEUE
-- include rwlock/state.lua

local owner, readers, left = '', 0, math.max(redis.call('PTTL', NAME), -1)
if mode then
  for _, field in ipairs(redis.call('HKEYS', NAME)) do
    if string.find(field, ':write', -6, true) then
      owner = field
    elseif field ~= 'mode' and redis.pcall('EXISTS', timeout_of(field)) ~= (moving and -1 or 0) then
      readers = readers + 1
      if mode == 'read' then owner = field end
    end
  end
end
if owner == '' then left = 0 end
local number, reserved = state_token()
if number and mode == 'read' then number = number + reserved end
local queued = not (moving and moving.lacks(QUEUE))
local reply = {
  owner, decimal(owner ~= '' and number or 0), left, queued and redis.call('LLEN', QUEUE) or 0, readers,
}
if queued and tonumber(ARGV[1]) > 0 then
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, ARGV[1] - 1)) do reply[#reply + 1] = entry end
end
return reply
