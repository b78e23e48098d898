-- clock: reads the clock of the server that has a name, in a cluster.
--
-- KEYS  1 any key of the name
-- Reply the same as that of TIME

return redis.call('TIME')
