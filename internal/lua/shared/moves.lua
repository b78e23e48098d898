-- moves: whether a slot moves, and one of several keys is not here, into the local moves. all: the reply to
-- EXISTS for these keys. While a slot moves, both sides refuse a command over several keys when one of them is
-- missing. So a number says that all are here, or that the slot is at rest. If one of several keys is missing
-- beside a number, the slot is at rest. Newer servers, as Redis 8.2, have other words for that than those before.
--
-- A short way asks for NAME and one more key, which it wants to be missing. Then it need not ask again. What
-- is behind a line "-- moves" of a script knows all companions to be here, or the slot to be at rest. Where
-- that is not so, the script ends there. It has done nothing, and its client sends the careful text.
local moves = type(all) ~= 'number'
  and (string.find(all.err or '', 'non local key', 1, true) or string.find(all.err or '', 'rehashing of the slot', 1, true))
