-- asks: notes that a client asks which was called: see shared/queue.lua. It is made to be inlined. Redis does
-- not refuse a script for lack of memory that has written, so nothing is deleted that is not there.
if redis.pcall('EXISTS', CALLED) == 1 then redis.pcall('HDEL', CALLED, (string.match(ARGV[1], '^[^:]+'))) end
