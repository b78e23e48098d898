-- enter: begin to wait for the outcome of a run that ends from now on. Safe to repeat: a copy that comes late
-- only makes the record again.
--
-- Keys  as in once/state.lua
-- ARGV  1 ms that the record is kept at least
-- Reply a number: only outcomes with greater ones are for this waiter
-- include once/state.lua

-- Where nothing is known the number is recorded. So any later outcome has a greater one, also when the clock
-- is set back in between. Else it is the clock: a function that has returned by now is of no use, also when
-- that is not recorded yet.
if over == 0 then
  over = next_over(micros)
  redis.call('HSET', RUN, 'over', decimal(over))
  redis.call('PEXPIRE', RUN, ARGV[1])
end
return decimal(math.max(over, micros))
