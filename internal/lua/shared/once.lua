-- once: makes a command take effect once, however often it arrives. Redis records the outcome under the
-- command's id, also when nothing was done. The record is kept until the client says that the command was
-- answered and will not be sent again, or for ten minutes.
--
-- DONE  prefix of the records
-- ARGV  1 id of the command: <client id>:<number>
--       2 numbers of this client's commands that were answered
-- keys DONE NEWS

local ONCE_KEPT = '600000' -- ms

-- The outcome of an earlier copy of the command, or nil. The outcome must match one of the patterns.
local function recorded(...)
  local key = DONE .. ':' .. ARGV[1]
  if moving then
    moving.need(key)
    for _, companion in ipairs(COMPANIONS) do
      if companion ~= DONE then moving.need(companion) end
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

local function record(outcome) redis.call('SET', DONE .. ':' .. ARGV[1], outcome, 'PX', ONCE_KEPT) end

-- Deletes the records of commands that were answered, and returns its argument.
local function forget_answered(reply)
  if ARGV[2] ~= '' then
    -- inline shared/forget.lua
  end
  return reply
end

-- Redis must not refuse a script for lack of memory when the script frees waiters. It refuses nothing to a
-- script that has written, and it never refuses DEL. The key does not exist.
local function exempt_from_memory_limit() redis.pcall('DEL', DONE) end

-- Publishes a message. Messages are hints: when Redis does not allow one, what was done stays done.
local function publish(message) redis.pcall(VERB, NEWS, message) end
