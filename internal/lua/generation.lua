-- generation: included by the scripts of what is used again and again, and releases all its waiters at once
-- each time. A waiter belongs to a generation, and learns from any later state what became of it: a
-- generation that is over and not listed as bad did what was waited for. Of generations before `first`
-- nothing is known: Redis has lost them, or the list has.
--
-- Numbers of generations grow, also after Redis has lost them: the first one is the server's clock in
-- microseconds.

local MOST_BAD = 32

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) -- ms

-- The state that a hash has in fields of ours, which is nobody else's: whole numbers, letters, and what spoil lists.
local function number_of(text, digits)
  if not text then return 0 end
  return #text <= (digits or 16) and string.find(text, '^%d+$') and tonumber(text) or nil
end

local function is_list(bad) return bad == '' or string.gsub(bad, '%d+%a ', '') == '' and #bad < 1000 end

local function decimal(number) return string.format('%.0f', number) end

local function clock() return time[1] * 1000000 + time[2] end

-- Lists the generation of a state as one that did not do what was waited for, with a letter that says why.
local function spoil(state, why)
  state.bad = state.bad .. decimal(state.generation) .. why .. ' '
  local _, n = string.gsub(state.bad, ' ', '')
  if n > MOST_BAD then
    local oldest, rest = string.match(state.bad, '^(%d+)%a (.*)$')
    state.first, state.bad = oldest + 1, rest
  end
end

-- The generation after this one; a state that was not known begins anew.
local function succeed(state)
  if state.generation == 0 then
    state.generation = clock()
    state.first = state.generation
  else
    state.generation = state.generation + 1
  end
end
