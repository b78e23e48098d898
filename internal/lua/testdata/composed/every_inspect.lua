--!df flags=allow-undeclared-keys
local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'
local RUN = 'latchkey_every:{' .. NAME .. '}'
local RUNS = 'latchkey_runs:{' .. NAME .. '}'
if moving then
  moving.need(RUN)
  moving.need(RUNS)
end
local reply = {redis.call('HGET', RUN, 'next') or '0', tostring(redis.call('EXISTS', NAME))}
for _, run in ipairs(redis.call('LRANGE', RUNS, 0, 10)) do
  if #run < 8192 then reply[#reply + 1] = run end -- none of ours is so long
end
return reply
