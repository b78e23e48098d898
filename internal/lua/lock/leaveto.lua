-- leaveto: what an offer does when it is Redisson's turn: it leaves the lock free, and the fresh id queues.
ended = true
if leave_free() then
  local now = clock()
  if not queues then return {REPLY_BUSY, tonumber(KEPT), now} end
  local sequence = next_place(now)
  redis.call('RPUSH', QUEUE, entry)
  redis.call('PEXPIRE', QUEUE, QUEUE_KEPT)
  note_lease(ARGV[3], ARGV[1])
  return {sequence, ask_in(tonumber(KEPT)), now}
end
