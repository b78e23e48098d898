-- call: calls those who wait, after something was granted that a client did not react to. It is made to be
-- inlined, once everything that is free has been granted. See shared/queue.lua.
--
-- Errors are ignored, because what was done before must not stay half done. CALLED is none of the COMPANIONS:
-- see note_lease of shared/pace.lua.
if not answering and (not SLOTS or type(redis.pcall('EXISTS', NAME, CALLED)) == 'number') then
  redis.pcall('DEL', CALLED)
  for client, entry in pairs(tell_waiting('a', '', ARGV[1])) do redis.pcall('HSET', CALLED, client, entry) end
  redis.pcall('PEXPIRE', CALLED, QUEUE_KEPT)
end
