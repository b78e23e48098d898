-- inspect: who holds the lock, and who waits for it. Reads only.
--
-- Keys  as in rwlock/state.lua
-- ARGV  1 how many entries of the queue to list
-- Reply as of lock/inspect.lua. The owner is the writer, with its :write, or one of the readers; ms until the
--       lease of the writer ends, or the last of the readers
-- keys QUEUE
-- include rwlock/state.lua

local owner, readers, left = '', 0, math.max(redis.call('PTTL', NAME), -1)
local fields, leases = {}, {} -- of readers
for _, field in ipairs(mode and redis.call('HKEYS', NAME) or {}) do
  if string.find(field, ':write', -6, true) then
    owner = field
  elseif field ~= 'mode' then
    local lease = timeout_of(field)
    if undeclared and undeclared(lease) then
      readers = readers + 1
      if mode == 'read' then owner = field end
    else
      fields[#fields + 1], leases[#leases + 1] = field, lease
    end
  end
end
for from = 1, #fields, 1000 do
  local to = math.min(from + 999, #fields)
  local all = not moving and redis.pcall('EXISTS', unpack(leases, from, to)) == to - from + 1
  for i = from, to do
    if all or redis.pcall('EXISTS', leases[i]) ~= (moving and -1 or 0) then
      readers = readers + 1
      if mode == 'read' then owner = fields[i] end
    end
  end
end
if owner == '' then left = 0 end
local number, reserved = state_token()
if number and mode == 'read' then number = number + reserved end
local queued = not (moving and moving.lacks(QUEUE))
local reply = {
  owner, owner ~= '' and number or '0', left, queued and redis.call('LLEN', QUEUE) or 0, readers,
}
if queued and tonumber(ARGV[1]) > 0 then
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, ARGV[1] - 1)) do reply[#reply + 1] = entry end
end
return reply
