-- join: the short way into the queue of a lock, in an acquire: an id that has not been sent before finds an
-- owner of ours that does not hand on inside, and no lease is short. Keys, ARGV and replies: as in
-- lock/acquire.lua. It makes no functions, as each costs as much as a command. Where there is more to it,
-- nothing is done, and the caller goes on.

if string.sub(ARGV[4], 1, 5) == 'first' and not ARGV[5] and not moving and #ARGV[3] > 4 then
  local held = redis.call('HRANDFIELD', NAME, '2', 'WITHVALUES')
  local longest, granted = string.match(held[2] or '', '^t%d+/(%d+)!?(%d*)$')
  local left = #held == 2 and longest and redis.call('PTTL', NAME)
  if left and left >= 0 and left <= tonumber(longest)
    and redis.call('EXISTS', 'latchkey_pace' .. string.sub(QUEUE, 15)) == 0 then
    local now
    -- inline shared/now.lua
    if granted ~= '' then left = math.min(left, 2000 - math.floor((now - granted) / 1000)) end
    if left > 0 and redis.call('LLEN', QUEUE) < 100000 then
      local place = redis.pcall('INCR', TOKEN)
      if type(place) == 'number' and place > 1e15 and place < 9007199254740991 then
        redis.call('RPUSH', QUEUE, '1:' .. ARGV[1] .. ':' .. ARGV[3] .. ':0')
        redis.call('PEXPIRE', QUEUE, '60000')
        return {place, left, now}
      end
      if place ~= 1 and type(place) == 'number' then redis.call('DECR', TOKEN) end
    end
  end
end
