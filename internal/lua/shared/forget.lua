-- forget: deletes the records of commands that were answered: see shared/once.lua. It is made to be inlined
-- where ARGV[2] is not empty.
local client, single = string.match(ARGV[1], '^[^:]+:'), string.match(ARGV[2], '^(%d+) ?$')
if single and not moving then
  redis.call('DEL', DONE .. ':' .. client .. single)
else
  local gone = {}
  for number in string.gmatch(ARGV[2], '%d+') do gone[#gone + 1] = DONE .. ':' .. client .. number end
  for i = 1, moving and #gone or 0 do redis.pcall('DEL', gone[i]) end -- those on the other side expire
  if not moving then redis.call('DEL', unpack(gone)) end
end
