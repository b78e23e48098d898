-- quick: the short way of an arrival, which makes no functions: nobody has sent the command before, nobody
-- else takes part in a generation of a barrier that is whole, and its client is a member already, if it has
-- to be one. Keys, ARGV and replies: as in barrier/arrive.lua. Where there is more to it, nothing is done,
-- and the caller goes on. It asks for two keys that are missing, which says that the slot is at rest: see
-- shared/moves.lua.
-- keys NEWS ARRIVALS DONE MEMBERS

local key = DONE .. ':' .. ARGV[1]
if ARGV[3] == '1' and ARGV[5] == '0' and not moving and redis.pcall('EXISTS', key, ARRIVALS) == 0 then
  local f = redis.pcall('HMGET', NAME, 'generation', 'first', 'bad', 'phase', 'parties', 'waiting',
    'barrier', 'lease')
  -- No more fields than those and the leader: nobody's arrivals are counted.
  if f[4] == 'w' and f[5] == '0' and f[6] == '0' and f[7] == '1'
    and f[1] and f[2] and f[3] and f[8] and #f[1] == 16 and f[1] > '1' and #f[2] <= 16 and #f[8] <= 10
    and string.find(f[1] .. f[2] .. f[8], '^%d+$') and (ARGV[6] == '' or tonumber(ARGV[4]) <= tonumber(f[8]))
    and (f[3] == '' or #f[3] < 1000 and string.gsub(f[3], '%d+%a ', '') == '')
    and redis.call('HLEN', NAME) == 9 then
    local now
    -- inline shared/now.lua
    now = math.floor(now / 1000)
    local lease = ARGV[4] + 1
    local own = ARGV[6] ~= '' and ARGV[6]
    local first = redis.pcall('ZRANGE', MEMBERS, '0', '1', 'WITHSCORES')
    local dies = first[2] and (tonumber(first[2]) or math.huge)
    if not first.err and (not dies or dies > now)
      and (not own or first[1] == own or redis.call('ZSCORE', MEMBERS, own)) then
      local ends = own == first[1] and first[4] or own ~= first[1] and first[2]
      ends = ends and (tonumber(ends) or math.huge) - now
      if own then ends = math.min(ends or lease, lease) end
      ends = ends and ends < 1e15 and string.format('%d', ends) or '-1'
      local generation = string.format('%d', f[1] + 1)
      -- When memory is short, Redis refuses this, and nothing is done.
      redis.call('SET', key, f[1] .. ':0', 'PX', '600000')
      if own then
        redis.call('ZADD', MEMBERS, string.format('%d', now + lease), own)
        redis.call('PEXPIRE', MEMBERS, '172800000')
      end
      redis.call('HSET', NAME, 'generation', generation)
      redis.call('PEXPIRE', NAME, '172800000')
      redis.pcall(VERB, NEWS, '1 r w ' .. generation .. ' ' .. f[2] .. ' ' .. ends .. ' ' .. f[3])
      if ARGV[2] ~= '' then
        -- inline shared/forget.lua
      end
      return {f[1], '0', '0', {'w', generation, f[2], f[3], ends, '0', '0'}}
    end
  end
end
