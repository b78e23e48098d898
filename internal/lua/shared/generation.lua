-- generation: the state of a primitive that is used again and again, and releases all its waiters at once
-- each time (a latch, a barrier).
--
-- Each use is a generation. A waiter belongs to one, and any later state says what became of it. A generation
-- that is over, and is not listed as bad, did what its waiters waited for. Nothing is known of generations
-- before `first`: Redis has lost them, or they no longer fit in the list.
--
-- The numbers of generations grow, also after Redis has lost them: the first number is the server's clock in
-- microseconds.

local MOST_BAD = 32 -- generations that the list holds

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) -- ms

-- Reads a whole number of a state. 0 when it is absent, nil when it is none of ours.
local function number_of(text, digits)
  if not text then return 0 end
  return #text <= (digits or 16) and string.find(text, '^%d+$') and tonumber(text) or nil
end

-- Whether a text is a list that spoil has written.
local function is_list(bad) return bad == '' or string.gsub(bad, '%d+%a ', '') == '' and #bad < 1000 end

local function decimal(number) return string.format('%d', number) end

local function clock() return time[1] * 1000000 + time[2] end

-- Lists the state's generation as bad: it did not do what its waiters waited for. The letter says why.
local function spoil(state, why)
  state.bad = state.bad .. decimal(state.generation) .. why .. ' '
  local _, n = string.gsub(state.bad, ' ', '')
  if n > MOST_BAD then
    local oldest, rest = string.match(state.bad, '^(%d+)%a (.*)$')
    state.first, state.bad = oldest + 1, rest
  end
end

-- Moves the state to its next generation. A state without a generation begins at the clock.
local function succeed(state)
  if state.generation == 0 then
    state.generation = clock()
    state.first = state.generation
  else
    state.generation = state.generation + 1
  end
end
