-- leave: a term is over. It is a help for those who watch: the lock says by itself that nobody leads. Safe to
-- repeat.
--
-- Keys  as in leader/record.lua
-- ARGV  1 unused
--       2 token, in 16 digits
-- Reply 1 it was the last term that was written, 0 it was not: nothing was done
-- include leader/record.lua

if said[1] ~= ARGV[2] then return 0 end
redis.call('HDEL', RECORD, 'token', 'who', 'since')
publish()
return 1
