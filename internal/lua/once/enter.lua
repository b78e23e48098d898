-- enter: begin to wait for the outcome of a run that ends from now on. Safe to repeat: a copy that comes late
-- only makes the record again.
--
-- Keys  as in once/state.lua
-- ARGV  1 ms that the record is kept at least
-- Reply number of the last outcome. Only those with greater numbers are for this waiter
-- include once/state.lua

-- Where nothing is known the number is made here, and recorded: so that of any later outcome is greater, also
-- when the clock is set back meanwhile.
if over == 0 then
  over = tonumber(next_over())
  redis.call('HSET', RUN, 'over', decimal(over))
  redis.call('PEXPIRE', RUN, ARGV[1])
end
return decimal(over)
