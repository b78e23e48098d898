-- announce: says how many permits are free, in a commit, in place of the line that follows it.
if left_free == 1 and free then redis.pcall('SET', HOLDOFF, decimal(free), 'XX', 'KEEPTTL') end
if given and free and free > 0 then announce('0' .. decimal(free)) end
given = false
