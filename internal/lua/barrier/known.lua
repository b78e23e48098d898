-- known: what came of an earlier copy of an arrival, or of what gave it up; nil: there was none.
-- include shared/once.lua

local function known() return recorded('^%d+:%d+$', '^%-?[01]$', '^given up$') end
