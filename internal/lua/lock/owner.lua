-- owner: what is said to the owner of a lock. Uses NAME.
-- include lock/grant.lua
-- include lock/holder.lua

-- Sends a message of a kind to the client of an owner, if that is one of ours. The message
-- names its owner id, and has the text behind that if one is given.
local function tell_owner(owner, kind, text)
  local client, number = string.match(owner, '^([^:]+):(%d+)$')
  if client then tell(client, kind, text and number .. ' ' .. text or number) end
end

-- The reply to an owner: the token alone, or {0, token, reserved, others}.
local function owner_reply(token, reserved)
  if reserved == 0 then return token end
  return {0, token, reserved, others_wait()}
end
