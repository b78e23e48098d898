-- leaveto: what an offer does when it is Redisson's turn: as lock/leaveto.lua.
if leave_free() then
  drop_former()
  redis.call('DEL', NAME)
  announce_release()
  local now = clock()
  if not queues then return {REPLY_BUSY, tonumber(KEPT), now} end
  local sequence = next_place(now)
  redis.call('RPUSH', QUEUE, entry)
  redis.call('PEXPIRE', QUEUE, QUEUE_KEPT)
  note_lease(ARGV[3], id)
  return {sequence, ask_in(tonumber(KEPT)), now}
end
