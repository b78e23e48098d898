-- eval: what stands before a script of the user's, unless a greater token was there. It is a part of that
-- script, and becomes one line: so the user's lines keep their numbers, and nothing stands behind them that
-- an early return could leave out. A copy would run the user's script again: it is sent once.
--
-- KEYS  as in fence/check.lua. The user's script sees the n that are its own
-- ARGV  1 token in 16 digits, then the user's. Its script sees those alone
-- Reply that of the user's script, and its errors
--       error LATCHKEY_STALE, LATCHKEY_FOREIGN: as in fence/set.lua

local KEYS, ARGV = KEYS, ARGV
do
  -- include fence/check.lua
  for i = 1, n do
    local number = tokens[i] == ARGV[1] and numbers[i] ~= '' and ' ' .. numbers[i] or ''
    redis.call('SET', KEYS[n + i], ARGV[1] .. number, 'PX', '86400000')
  end
  local keys, args = {}, {}
  for i = 1, n do keys[i] = KEYS[i] end
  for i = 2, #ARGV do args[i - 1] = ARGV[i] end
  KEYS, ARGV = keys, args
end
