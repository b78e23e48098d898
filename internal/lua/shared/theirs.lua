-- theirs: whether a process of Redisson listens for a release, into the local theirs: more listen to RELEASED
-- than to EAR. Where the caller may not ask who listens, none is taken to. It makes no functions. It is made
-- to be inlined where RELEASED and EAR are known.
--
-- Valkey 9.1 says an address in memory in place of some numbers, as 8, 15 and 16. Then one of Redisson is
-- taken to listen: a turn that nobody takes costs little, and a waiter that is not woken sleeps for long.
local listen = redis.pcall('PUBSUB', NUMSUB, RELEASED, EAR)
local theirs = not listen.err and (listen[2] > listen[4] or listen[4] > 2147483647)
