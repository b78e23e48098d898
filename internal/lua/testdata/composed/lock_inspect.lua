--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local QUEUE = 'latchkey_queue:{' .. NAME .. '}'
local function parse_token(text)
  local number, reserved, lingers, longest, granted =
    string.match(text or '', '^t(%d+)%+?(%d*)(l?)/?(%d*)!?(%d*)$')
  if not number or #number > 16 or #reserved > 4 or #longest > 10 or #granted > 16 then return nil, 0 end
  return number, tonumber(reserved) or 0, tonumber(longest), lingers ~= '', tonumber(granted)
end
local INBOX = 'latchkey_inbox:'
local SHORT = 2000
local OUTLIVES = 1000
local QUEUE_KEPT = '60000'
local counted = {}
local function alive(client)
  if counted[client] == nil then
    local reply = redis.pcall('PUBSUB', NUMSUB, INBOX .. client)
    counted[client] = reply.err ~= nil or reply[2] > 0
  end
  return counted[client]
end
local function tell(client, kind, text)
  return redis.pcall(VERB, INBOX .. client, '1 ' .. kind .. ' ' .. text .. ' ' .. NAME)
end
local function tell_grant(client, kind, number, text, reserved, others, now, short)
  tell(client, kind, number .. ' ' .. text .. ' ' .. reserved .. ' ' .. others .. ' ' .. now .. ' ' .. short)
end
local function fields() return redis.call('HRANDFIELD', NAME, '2', 'WITHVALUES') end
local function is_lock(held)
  return #held == 2 and string.find(held[1], ':', 1, true)
    and (parse_token(held[2]) or string.find(held[2], '^%d+$')) and true
end
local function not_a_lock()
  return {err = 'WRONGTYPE ' .. NAME .. ' holds data that is not a lock'}
end
local function lease_left(now, longest, granted)
  local left = redis.call('PTTL', NAME)
  if left == -2 then return nil end
  local short = math.min(longest or SHORT, SHORT)
  if granted and longest then longest = math.max(longest, short + OUTLIVES) end
  if longest and left > longest then
    redis.call('PEXPIRE', NAME, longest)
    left = longest
  end
  if not granted then return left end
  return math.min(left, math.max(0, math.ceil((granted - now) / 1000) + short))
end
local time = redis.call('TIME')
local held = fields()
local token, _, longest, may_linger, granted = parse_token(held[2])
if held[1] and not is_lock(held) then return not_a_lock() end
local left = held[1] and lease_left(time[1] * 1000000 + time[2], longest, granted)
local queued = not (moving and moving.lacks(QUEUE))
local reply = {
  left and held[1] or '', left and token or '0', left or 0, queued and redis.call('LLEN', QUEUE) or 0,
  left and may_linger and -1 or 0,
}
if queued and tonumber(ARGV[1]) > 0 then
  for _, entry in ipairs(redis.call('LRANGE', QUEUE, 0, ARGV[1] - 1)) do reply[#reply + 1] = entry end
end
return reply
