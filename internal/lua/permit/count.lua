-- count: serves a single request of plain permits without a transaction, when nobody waits: a take or a put.
-- Most requests end here; permit/trade.lua does the rest. It makes no functions, as each costs as much as a
-- command. Where there is more to it, nothing is done but to forget what was answered, and the script goes
-- on.
--
-- Keys, replies, and ARGV of many requests: as in permit/trade.lua. A single request has fewer arguments.
-- ARGV  1 owner id, 2 floor: as there
--       put    3 how many permits to add
--              4 numbers of commands that were answered; may be missing
--       take   3 lease, 4 demand, 5 mode
--              6 numbers of commands that were answered; may be missing
--              7 longest queue; 100000 when it is missing
-- keys QUEUE

-- Where there are slots, that one of both keys is missing says that the slot is at rest: see shared/moves.lua.
local free = #ARGV < 9 and not moving
  and (SLOTS and redis.pcall('EXISTS', NAME, QUEUE) == 1 or not SLOTS and redis.call('EXISTS', QUEUE) == 0)
  and redis.call('GET', NAME)
-- redisson -- inline permit/listen.lua
if free and #free <= 9 and (free == '0' or string.find(free, '^[1-9]%d*$')) then
  local id, mode, n, answered, late = ARGV[1], ARGV[5], ARGV[3], ARGV[4], false
  if mode then
    n, answered = ARGV[4], ARGV[6] or ''
    if #mode > 5 then
      local now
      -- inline shared/now.lua
      late = now > string.sub(mode, 5)
    end
  end
  if not late and (n == '1' or #n <= 9 and string.find(n, '^[1-9]%d*$')) and (not mode or free - n >= 0) then
    -- inline keys DONE
    local prefix = DONE .. ':'
    -- A late copy finds the record, and must not do it a second time.
    if not mode or redis.call('SET', prefix .. id, n, 'PX', '600000', 'NX') then
      -- What gives back must not be refused for lack of memory. Redis never refuses these commands as the
      -- first, nor what follows them.
      if not answered then
        redis.pcall('PEXPIRE', QUEUE, '60000')
      elseif answered ~= '' then
        local client = prefix .. string.sub(id, 1, (string.find(id, ':', 1, true)))
        if string.find(answered, ' ', 1, true) == #answered then
          redis.call('DEL', client .. string.sub(answered, 1, -2))
        else
          local gone = {}
          for number in string.gmatch(answered, '%d+') do gone[#gone + 1] = client .. number end
          redis.call('DEL', unpack(gone))
        end
      end
      if mode then
        redis.call('DECRBY', NAME, n)
        return {1}
      elseif redis.call('SET', prefix .. id, n, 'PX', '600000', 'NX') then
        -- inline keys CHANNEL
        redis.pcall(VERB, CHANNEL, redis.call('INCRBY', NAME, n)) -- Redisson's waiters try again
        return {1}
      end
    end
  end
end

-- moves

-- As many requests have them: see permit/trade.lua.
local ARGV = #ARGV >= 9 and ARGV or ARGV[5]
  and {ARGV[1], ARGV[2], ARGV[7] or '100000', ARGV[6] or '', 'take', ARGV[1], ARGV[3], ARGV[5], ARGV[4]}
  or {ARGV[1], ARGV[2], '0', ARGV[4] or '', 'put', ARGV[1], ARGV[3], '', ''}
