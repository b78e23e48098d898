-- join: the short way into the queue of a lock, in an acquire: an id that has not been sent before finds an
-- owner of ours that does not hand on inside, and no lease is short. Keys, ARGV and replies: as in
-- lock/acquire.lua. It makes no functions, as each costs as much as a command. Where there is more to it,
-- nothing is done, and the caller goes on.

if (ARGV[4] == 'first' or ARGV[4] == 'first now') and not ARGV[5] and not moving and #ARGV[3] > 4 then
  local held = redis.call('HRANDFIELD', NAME, '2', 'WITHVALUES')
  local longest, granted = string.match(held[2] or '', '^t%d+/(%d+)!?(%d*)$')
  local ours = #held == 2 and longest and (granted == '' or #granted == 16)
  local left = ours and redis.call('PTTL', NAME)
  if left and left >= 0 and left <= tonumber(longest)
    and redis.call('EXISTS', 'latchkey_pace' .. string.sub(QUEUE, 15)) == 0 then
    local now, floor = nil, ARGV[2]
    -- inline shared/now.lua
    if granted ~= '' then
      local age = string.sub(now, 8) - string.sub(granted, 8) -- modulo a thousand seconds: long numbers cost
      if age < 0 then age = age + 1e9 end
      left = math.min(left, 2000 - math.floor(age / 1000))
    end
    if left > 0 then
      -- The number of the place is made as a token is: see shared/place.lua.
      local last = redis.call('SET', TOKEN, now, 'KEEPTTL', 'GET')
      -- inline shared/newest.lua
      if newest then
        local length = redis.call('RPUSH', QUEUE, '1:' .. ARGV[1] .. ':' .. ARGV[3] .. ':0')
        if length <= 100000 then
          redis.call('PEXPIRE', QUEUE, '60000')
          return {now, left, now}
        end
        redis.call('RPOP', QUEUE)
        return {-2, length - 1, now}
      elseif last then
        redis.call('SET', TOKEN, last, 'KEEPTTL')
      else
        redis.call('DEL', TOKEN)
      end
    end
  end
end
