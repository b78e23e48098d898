-- enter: begin to wait for the outcome of a run that ends from now on. Safe to repeat: a copy that comes late
-- only makes the record again.
--
-- Keys  as in once/state.lua
-- ARGV  1 ms that the record is kept at least
-- Reply a number: only outcomes with greater ones are for this waiter
-- include once/arrival.lua

return decimal(arrive(ARGV[1]))
