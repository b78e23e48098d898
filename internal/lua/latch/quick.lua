-- quick: the short way of a count, which makes no functions: nobody has sent the command before, and more
-- remains of a shut latch than it counts, for no participant. Keys, ARGV and replies: as in latch/count.lua.
-- Where there is more to it, nothing is done, and the caller goes on.
-- keys RECORD DONE

local key = DONE .. ':' .. ARGV[1]
-- Where there are slots, that one of both keys is missing says that the slot is at rest: see shared/moves.lua.
if not ARGV[4] and not moving
  and (SLOTS and redis.pcall('EXISTS', NAME, key) == 1 or not SLOTS and redis.pcall('EXISTS', key) == 0) then
  local count = redis.pcall('GET', NAME)
  local f = redis.pcall('HMGET', RECORD, 'generation', 'first', 'bad', 'phase', 'ttl', 'until')
  -- Numbers of so few digits are exact.
  local plain = f[4] == 's' and f[1] and f[2] and f[3] and f[5] and f[6] and type(count) == 'string'
    and #f[1] == 16 and #f[2] <= 16 and #f[5] <= 12 and #f[6] <= 15 and #count <= 15
    and string.find(f[1] .. f[2] .. ' ' .. f[5] .. ' ' .. f[6] .. ' ' .. count, '^%d+ %d+ %d+ [1-9]%d*$')
    and (f[3] == '' or #f[3] < 1000 and string.gsub(f[3], '%d+%a ', '') == '')
  if plain and f[6] ~= '0' then
    local now
    -- inline shared/now.lua
    local left = f[6] - math.floor(now / 1000)
    plain = left > 0 and left <= tonumber(f[5])
  end
  local rest = plain and count - ARGV[3] or 0
  if rest > 0 then
    rest = string.format('%d', rest)
    -- First: Redis never refuses it for lack of memory, nor what follows.
    if ARGV[2] == '' then
      redis.pcall('DEL', DONE)
    else
      -- inline shared/forget.lua
    end
    redis.call('DECRBY', NAME, ARGV[3])
    redis.call('SET', key, '1 ' .. rest, 'PX', '600000')
    return {'1', rest}
  end
end
