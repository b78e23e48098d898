-- now: reads the server's clock in microseconds into the local now, as text: 16 digits, which compare as the
-- numbers do. To format a number costs as much as to ask for the time. It is made to be inlined.
local time = redis.call('TIME')
now = time[2]
if #now < 6 then now = string.sub('00000' .. now, -6) end
now = time[1] .. now
