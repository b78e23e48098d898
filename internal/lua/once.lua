-- once: included by the scripts that take effect once, however often they arrive. What came of a command is
-- recorded under its id, also when nothing was done, until its client says that it was answered and will not
-- be sent again, or for ten minutes. Uses KEYS[3] (prefix of the records), ARGV[1] (the id: <client
-- id>:<number>) and ARGV[2] (numbers of this client's commands that were answered).

local ONCE_KEPT = '600000' -- ms

-- What came of the command, which is written in one of these ways; nothing when it has not come before.
local function recorded(...)
  local key = KEYS[3] .. ':' .. ARGV[1]
  if moving then
    moving.need(key)
    for i = 2, #KEYS do
      if i ~= 3 then moving.need(KEYS[i]) end
    end
  end
  local outcome = redis.call('GET', key)
  if not outcome then return nil end
  local known = false
  for _, pattern in ipairs({...}) do known = known or string.find(outcome, pattern) end
  for number in string.gmatch(outcome, '%d+') do
    known = known and (#number < 19 or #number == 19 and number <= '9223372036854775807')
  end
  if known then return outcome end
  error('WRONGTYPE ' .. key .. ' does not say what came of a command')
end

local function record(outcome) redis.call('SET', KEYS[3] .. ':' .. ARGV[1], outcome, 'PX', ONCE_KEPT) end

-- Deletes what is not needed any more, and returns a reply.
local function forget_answered(reply)
  if ARGV[2] ~= '' then
    local client, gone = string.match(ARGV[1], '^[^:]+'), {}
    for number in string.gmatch(ARGV[2], '%d+') do gone[#gone + 1] = KEYS[3] .. ':' .. client .. ':' .. number end
    for i = 1, moving and #gone or 0 do redis.pcall('DEL', gone[i]) end -- those on the other side expire
    if not moving then redis.call('DEL', unpack(gone)) end
  end
  return reply
end

-- What frees those who wait must not be refused for lack of memory. A script that has written, and deleting
-- is never refused, is not; there is no such key.
local function exempt_from_memory_limit() redis.pcall('DEL', KEYS[3]) end

-- Messages are hints, and whether they may be published does not change what was done.
local function publish(message) redis.pcall(ARGV[4], ARGV[3], message) end
