-- join: the short way into the queue of a lock, in an acquire: an id that nothing can have queued before
-- finds another owner of ours that does not hand on inside, and no lease is short. It is also that of an
-- attempt that finds another owner of ours. Keys, ARGV and replies: as in lock/acquire.lua. It makes no
-- functions, as each costs as much as a command. Where there is more to it, nothing is done, and the caller
-- goes on.

if not moving and ARGV[4] and string.sub(ARGV[4], 1, 3) == 'try' then
  -- Nothing is done. Who hands on inside need not hear of an attempt. An attempt without a deadline, as of a
  -- waiter that polls, is not told the time.
  local held = redis.call('HRANDFIELD', NAME, '2', 'WITHVALUES')
  local value = #held == 2 and held[1] ~= ARGV[1] and held[2] or ''
  local number, reserved, longest = string.match(value, '^t(%d+)%+?(%d*)/(%d+)$')
  if number and #number <= 16 and #reserved <= 4 and #longest <= 10 then -- see shared/value.lua
    local left = redis.call('PTTL', NAME)
    if left > 0 and left <= tonumber(longest) then -- else it must be cut
      local now = 0
      if #ARGV[4] > 5 then
        -- inline shared/now.lua
        if now > string.sub(ARGV[4], 5) then return {REPLY_LATE, 0, now} end
      end
      return {REPLY_BUSY, left, now}
    end
  end
elseif not moving and not ARGV[4] and (#ARGV[3] > 4 or #ARGV[3] == 4 and ARGV[3] >= '2000') then
  local held = redis.call('HRANDFIELD', NAME, '2', 'WITHVALUES')
  local value = #held == 2 and held[1] ~= ARGV[1] and held[2] or ''
  local left, granted
  -- t<16 digits>/<at least 4>!<16 digits>: a message granted it. Its lease is short until the first renewal.
  if #value >= 39 and string.byte(value, 18) == 47 and string.byte(value, -17) == 33
    and (#value > 39 or string.byte(value, 19) >= 50) then -- 2000 at least: see SHORT in shared/inbox.lua
    left, granted = 2000, tonumber(string.sub(value, -9, -4), 10) -- ms, modulo a thousand seconds
  else
    local longest = string.match(value, '^t%d+/(%d+)$')
    if longest and (#longest > 10 or #value - #longest > 18) then longest = nil end -- see shared/value.lua
    left = longest and redis.call('PTTL', NAME) or 0
    if longest and left > tonumber(longest) then left = 0 end -- it must be cut
  end
  if left > 0 then
    -- The number of the place is made as a token is: see shared/place.lua.
    -- inline shared/number.lua
    if fits and granted then
      -- Whoever granted the lock may have reckoned the clock, as this caller may: so that may have been a
      -- moment from now.
      local age = tonumber(string.sub(now, 8, 13), 10) - granted
      if age < -500000 then age = age + 1000000 end
      if age > 0 then left = 2000 - age elseif age < -200 then left = 0 end
    end
    if fits and left > 0 then -- else a number is lost, which is no matter
      local length = redis.call('RPUSH', QUEUE, '1:' .. ARGV[1] .. ':' .. ARGV[3] .. ':0')
      if length > 100000 then
        redis.call('RPOP', QUEUE)
        return {REPLY_FULL, length - 1, 0}
      end
      redis.call('PEXPIRE', QUEUE, '60000')
      if length > 1 then -- those before may have shorter leases: see shared/pace.lua
        -- inline keys PACE
        local pace = redis.pcall('GET', PACE)
        pace = type(pace) == 'string' and tonumber(pace)
        if pace and pace < left then left = math.max(pace, 10) end
      end
      if now == ARGV[2] then return left end
      return {now, left, now}
    end
  end
end
