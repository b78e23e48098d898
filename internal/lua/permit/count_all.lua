-- count_all: counts as permits also what is left to Redisson. It is part of permit/transaction.lua.
local without = capacity
capacity = function() return without() + left_free end
