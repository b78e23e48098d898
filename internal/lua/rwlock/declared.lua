-- declared: asks for the keys of readers: of those who read, and of the first who wait to. It is made to be
-- inlined where undeclared is a function. Others may begin to read before the caller runs the script again.
-- So the last time they are taken for readers whose lease is not over, and are granted nothing.
local wanted = {}
local function want(id, n)
  local key = timeout_of(id, n)
  if undeclared(key) and not string.find(id, '%s') then wanted[#wanted + 1] = string.sub(key, #LEASES + 1) end
end
local fields = redis.call('HGETALL', NAME)
for i = 1, #fields, 2 do
  local count = tonumber(fields[i + 1])
  if count and fields[i] ~= 'mode' and not string.find(fields[i], ':write', -6, true) then
    for n = 1, math.min(count, 64) do want(fields[i], n) end
  end
end
local queued = redis.pcall('LRANGE', QUEUE, 0, 99) -- so many are granted by one script
for i = 1, queued.err and 0 or #queued do
  local id, demanded = string.match(queued[i], '^1:([^:]+:%d+):%d+:(%d+s?)$')
  if id and string.sub(demanded, -1) == 's' then want(id) end
end
if wanted[1] and KEYS[#KEYS] ~= NAME then return {err = demand(wanted)} end
