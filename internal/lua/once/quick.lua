-- quick: the short way of an acquire, which makes no functions: there is an outcome for its caller. Keys, ARGV and replies: as
-- in once/acquire.lua. Where there is more to it, nothing is done, and the caller goes on. Also while the slot moves: it reads
-- one key alone, which is here or not.
-- keys RUN

local since = ARGV[#ARGV - 5]
if since ~= '' and not moving then
  local f = redis.pcall('HMGET', RUN, 'phase', 'over', 'kind', 'value')
  if f[1] == 'o' and f[2] and #f[2] <= 16 and string.find(f[2], '^%d+$') and tonumber(f[2]) > tonumber(since)
    and tonumber(f[2]) < 9007199254740990 and (f[3] == 'v' or f[3] == 'e') and f[4] and #f[4] <= 65536 then
    local now
    -- inline shared/now.lua
    return {0, {'o', f[3], f[4], f[2]}, since, now}
  end
end
