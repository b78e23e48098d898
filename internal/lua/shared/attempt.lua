-- attempt: reads the mode of an acquire.
-- include shared/token.lua

-- Returns the mode without its deadline, and whether the deadline is over.
--
--   try                                   never queue
--   try <microseconds since the epoch>    the same, and do nothing after that time of the server's clock: a
--                                         copy that arrives later need not be cancelled
--   first                                 queue; nothing can have queued this id before, but it may have what
--                                         it asks for
--   again                                 queue, unless this id is queued already
local function parse_mode(text)
  if string.sub(text, 1, 3) ~= 'try' then return string.sub(text, 1, 5), false end
  if text == 'try' then return text, false end
  return 'try', clock() > string.sub(text, 5)
end
