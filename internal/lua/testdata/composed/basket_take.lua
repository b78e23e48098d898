--!df flags=allow-undeclared-keys
local all, given = KEYS, ARGV
local ARGV, NAME, QUEUE, TOKEN, PACE, INBOX = {}
local VERB, NUMSUB = given[1], given[1] == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB'
local moving -- as in shared/moving.lua, and never set
local SLOTS = VERB == 'SPUBLISH' or nil
local count = (#given - 3) / 3
local function turn_to(i)
  NAME, QUEUE, TOKEN = all[3 * i - 2], all[3 * i - 1], all[3 * i]
  ARGV[1], ARGV[2], ARGV[3] = given[3 * i + 1], given[3 * i + 2], given[3 * i + 3]
  PACE = 'latchkey_pace' .. string.sub(QUEUE, 15) -- after 'latchkey_queue'
  INBOX = 'latchkey_inbox' .. (VERB == 'SPUBLISH' and string.sub(QUEUE, 15) or '') .. ':'
end
local function decimal(number) return string.format('%.0f', number) end
local function token_after(now, last, floor, reserved, lean)
  local number = tonumber(now)
  floor = tonumber(floor) or 0
  if last then
    local before = tonumber(last)
    if not (before and before > 0 and before < 9007199254730000) then
      redis.call('SET', TOKEN, last, 'KEEPTTL')
      error('WRONGTYPE ' .. TOKEN .. ' holds no fencing token')
    end
    if before > floor then floor = before end
  end
  if floor >= number then
    local ahead = 5000
    if floor > number + 2 * ahead then
      reserved = math.min(reserved, lean or 100)
    else
      reserved = math.max(0, math.min(reserved, number + ahead - floor - 1))
    end
    number = floor + 1
    redis.call('SET', TOKEN, decimal(number + reserved), 'KEEPTTL')
  end
  redis.call('PEXPIRE', TOKEN, (last or number > tonumber(now)) and '86400000' or '3600000')
  return decimal(number), reserved
end
local AHEAD = 5000
local DAY, HOUR = '86400000', '3600000'
local function clock()
  local now
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
  return now
end
local function next_token(now, block, lean)
  local floor = ARGV[2]
  if block and block > 0 then
    local reserved = math.min(block, AHEAD)
    local last = redis.call('SET', TOKEN, decimal(now + reserved), 'KEEPTTL', 'GET')
    return token_after(now, last, floor, reserved, lean)
  end
  local last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
local newest = last and last < now and floor < now and #last == 16 and last > '1'
  and string.byte(last, 7) == string.byte(now, 7)
  if newest then return now, 0 end
  return token_after(now, last, floor, 0, lean)
end
local function parse_token(text)
  local number, reserved, lingers, longest, granted =
    string.match(text or '', '^t(%d+)%+?(%d*)(l?)/?(%d*)!?(%d*)$')
  if not number or #number > 16 or #reserved > 4 or #longest > 10 or #granted > 16 then return nil, 0 end
  return number, tonumber(reserved) or 0, tonumber(longest), lingers ~= '', tonumber(granted)
end
local now = clock()
if given[3] ~= '0' and now > given[3] then return {-6, 0, now} end
local free, tokens, first = count, {}, {}
for i = 1, count do first[2 * i - 1], first[2 * i] = all[3 * i - 2], all[3 * i - 1] end
if redis.call('EXISTS', unpack(first)) > 0 then
  for i = 1, count do
    turn_to(i)
    if redis.call('EXISTS', NAME, QUEUE) > 0 then
      tokens[i] = parse_token(redis.call('HGET', NAME, ARGV[1]))
      if not tokens[i] then
        free = i - 1
        break
      end
    end
  end
end
if free < count and given[2] == 'all' then return {0, free, now} end
local reply, begun = {free, free, now}, {}
for i = 1, free do
  local lock, lease = all[3 * i - 2], given[3 * i + 3]
  if not tokens[i] then
    turn_to(i)
    local done, token = pcall(next_token, now)
    if not done then
      if begun[1] then redis.call('DEL', unpack(begun)) end -- nobody has heard of them
      error(token, 0)
    end
    tokens[i], begun[#begun + 1] = token, lock
    redis.call('HSET', lock, given[3 * i + 1], 't' .. token .. '/' .. lease)
  end
  redis.call('PEXPIRE', lock, lease)
  reply[i + 3] = tokens[i]
end
return reply
