-- value: what a lock says of its owner.

-- Reads t<number>+<reserved>l/<longest lease in ms>!<clock>, as lock/acquire.lua describes it. All but the
-- number may be missing. Returns the number as text, how many tokens are reserved behind it, the longest
-- lease, whether the owner may linger, and when it was granted by a message that is not confirmed yet. For
-- any other text: nil and 0.
local function parse_token(text)
  local number, reserved, lingers, longest, granted =
    string.match(text or '', '^t(%d+)%+?(%d*)(l?)/?(%d*)!?(%d*)$')
  if not number or #number > 16 or #reserved > 4 or #longest > 10 or #granted > 16 then return nil, 0 end
  return number, tonumber(reserved) or 0, tonumber(longest), lingers ~= '', tonumber(granted)
end
