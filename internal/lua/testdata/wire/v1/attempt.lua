-- attempt: included by the scripts that acquire. An attempt that may not wait says until when it may run, by the server's clock:
-- a copy that arrives later does nothing, and needs no cancel.

-- The mode without what it may carry, and whether its time is over. try: never queue; try <microseconds since the epoch>: the
-- same, until then; first: this id has not been sent before; again: it may be queued already.
local function parse_mode(text)
  if #text < 6 then return text, false end
  return 'try', micros() > tonumber(string.sub(text, 5))
end
