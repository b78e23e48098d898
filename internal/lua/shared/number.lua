-- number: the short way to the next number of a name, which nearly always is what the clock shows. It puts
-- that into the local now, where TOKEN holds it already, and sets the local fits. Otherwise TOKEN is as it
-- was. It is made to be inlined where TOKEN is known.
--
-- ARGV[2] may be the clock as the caller reckons it: then it costs no look at the clock, unless somebody else
-- has reckoned more.
local now, fits, last, failed = ARGV[2], false, nil, false
for look = #now == 16 and 1 or 2, 2 do
  local floor = ''
  if look == 2 then
    floor = ARGV[2]
    -- inline shared/now.lua
  end
  local before = redis.pcall('SET', TOKEN, now, 'KEEPTTL', 'GET')
  if before and before.err then
    failed = true
    break
  end
  if last == nil then last = before end
  -- inline shared/newest.lua
  if newest then
    fits = true
    break
  end
end
if fits or failed then -- foreign data is left alone
elseif last then
  redis.pcall('SET', TOKEN, last, 'KEEPTTL')
else
  redis.pcall('DEL', TOKEN)
end
