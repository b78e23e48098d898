-- ask: the short way of a question, in an acquire: many read, a writer is the first who waits, and the id
-- stands far behind it, where the last reply said, or a little further in front. All those ask every two
-- seconds. So none of these questions may cost the more the more there are. Keys, ARGV and replies: as in
-- rwlock/acquire.lua. It makes no functions, as each costs as much as a command. Where there is more to it,
-- nothing is done, and the caller goes on.
-- keys QUEUE STATE

if not moving and #(ARGV[4] or '') > 6 and string.byte(ARGV[4], 6) == 32 -- again, and a place
  and (#ARGV[3] > 4 or #ARGV[3] == 4 and ARGV[3] >= '2000') then
  local id, place = ARGV[1], tonumber(string.match(ARGV[4], '^again (%d+)') or '') or 0
  local holds = redis.call('HMGET', NAME, 'mode', id, id .. ':write')
  local reads = holds[1] == 'read' and not holds[2] and not holds[3]
  -- What is known of the first end of a lease: see rwlock/crowd.lua. There is none unless many read.
  local state = reads and place > 15 and redis.pcall('HMGET', STATE, 'ends', 'token') or {}
  local ends = state[1] and #state[1] == 13 and tonumber(state[1])
  local longest = ends and string.match(state[2] or '', '^t%d+%+?%d*/(%d+)$') or ''
  local head = #longest > 0 and #longest <= 10 and redis.pcall('LINDEX', QUEUE, 0)
  local client, lease = string.match(type(head) == 'string' and head or '', '^1:([^:]+):%d+:([1-9]%d*):%d+$')
  if client and #lease <= 10 then -- a writer
    local now
    -- inline shared/now.lua
    local left = ends - math.floor(now / 1000)
    -- inline keys INBOX PACE CALLED
    local timely = left > 0 and left <= tonumber(longest)
    local listening = timely and redis.pcall('PUBSUB', NUMSUB, INBOX .. client)
    if listening and (listening.err or listening[2] > 0) then
      local entry = '1:' .. id .. ':' .. ARGV[3] .. ':' .. (ARGV[5] or '0')
      local at = redis.call('LINDEX', QUEUE, place) == entry and place
      local near = at and {} or redis.call('LRANGE', QUEUE, place - 15, place - 1)
      for i = 1, #near do
        if near[i] == entry then at = place - 16 + i end
      end
      if at then
        redis.call('PEXPIRE', QUEUE, '60000')
        -- inline shared/asks.lua
        local pace = redis.pcall('GET', PACE) -- as ask_in of shared/pace.lua
        pace = type(pace) == 'string' and tonumber(pace)
        if pace and pace < left then left = math.max(pace, 10) end
        return {0, left, now, 0, at}
      end
    end
  end
end
