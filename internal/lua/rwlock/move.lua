-- move: give what an owner has of either half to another owner id, as lock/move.lua.
--
-- Keys  as in rwlock/state.lua
-- ARGV and reply: as in lock/move.lua
-- include shared/attempt.lua
-- include rwlock/state.lua
-- include shared/pace.lua

local _, late = parse_mode(ARGV[4])
if late then return {REPLY_LATE, 0, clock()} end
local id, old = ARGV[1], ARGV[5]
local holds = redis.call('HMGET', NAME, id, id .. ':write', old, old .. ':write')
local token
if holds[2] or holds[4] then
  if moving then moving.need(STATE) end
  token = state_token()
  if token then
    if not holds[2] and ARGV[6] then token = ARGV[6] end
    former = {old .. ':write'}
    own_write(id, ARGV[3], token, 0, ARGV[3])
  end
elseif holds[1] or holds[3] and redis.pcall('EXISTS', timeout_of(old)) ~= 0 then -- else its lease is over
  if moving then moving.need(timeout_of(id)) end
  former = {old}
  token = own_read(id, ARGV[3], ARGV[3])
end
if not token then return {REPLY_GONE, 0, clock()} end
note_lease(ARGV[3]) -- also those of its own client, which gets no answer as a waiter
return token
