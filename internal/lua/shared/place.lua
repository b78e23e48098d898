-- place: numbers the places in a queue.
-- include shared/token.lua

-- The number of a new place, which is greater than those before. It is the next one after the last token:
-- so it costs one call, and no look at the clock. now: what clock returned.
local function next_place(now)
  local place = redis.pcall('INCR', TOKEN)
  if type(place) == 'number' then
    if place > 1e15 and place < 9007199254740991 then return place end
    if place ~= 1 then redis.call('DECR', TOKEN) end
  end
  return tonumber((next_token(now))) -- there was no key, or there is foreign data, or Redis refuses to write
end
