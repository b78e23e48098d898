--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local RELEASED = 'redisson_lock__channel:{' .. NAME .. '}'
local function parse_token(text)
  local number, reserved, lingers, longest, granted =
    string.match(text or '', '^t(%d+)%+?(%d*)(l?)/?(%d*)!?(%d*)$')
  if not number or #number > 16 or #reserved > 4 or #longest > 10 or #granted > 16 then return nil, 0 end
  return number, tonumber(reserved) or 0, tonumber(longest), lingers ~= '', tonumber(granted)
end
local function others_wait()
  if not (moving and moving.lacks(QUEUE)) and redis.call('EXISTS', QUEUE) == 1 then return true end
  if ARGV[2] ~= '1' then return false end
  local reply = redis.pcall('PUBSUB', NUMSUB, RELEASED)
  return not reply.err and reply[2] > 0
end
local value = redis.call('HGET', NAME, ARGV[1])
local number, _, _, may_linger = parse_token(value)
if not number then return -3 end
if others_wait() then return 1 end
if not may_linger then
  redis.call('HSET', NAME, ARGV[1], (string.gsub(value, '^(t%d+)%+?(%d*)', function(token, reserved)
    return token .. '+' .. (reserved == '' and '0' or reserved) .. 'l'
  end)))
end
return 0
