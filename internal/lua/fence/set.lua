-- set: write a key of the user's, unless a greater token was there. Safe to repeat: the number says which Set
-- of its client it is. A copy that arrives after its first one, or after a later Set with the same token,
-- does nothing: that one was there when it, or what came after it, was done.
--
-- KEYS  as in fence/check.lua, of one key
-- ARGV  1 token in 16 digits
--       2 number of this Set, in 16 digits: greater than that of each one before of the client
--       3 value
-- Reply 1 written, 0 a copy: nothing was done
--       error LATCHKEY_STALE token <greater one>: nothing was done
--       error LATCHKEY_FOREIGN <text>: the companion is not ours, and nothing was done
-- include fence/check.lua

if tokens[1] == ARGV[1] and numbers[1] >= ARGV[2] then return 0 end
redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. ARGV[2], 'PX', '86400000')
redis.call('SET', KEYS[1], ARGV[3])
return 1
