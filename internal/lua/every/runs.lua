-- runs: what is told of the last runs of a job.
--
-- RUNS  LIST  the run that has begun last, and ten before it, the last one first. An entry has, with tabs between them: the tick,
--             the attempt, when it began and how many ms it took, both in ms; how it ended; who ran it, and what the
--             error said, both in a text. How: r: it has not, o: it is done, f: its function has failed, g: it gave up, d: it
--             died, or lost its lock
-- keys RUNS

if moving then moving.need(RUNS) end
local newest = redis.call('LINDEX', RUNS, 0) or ''

-- Tells that a run begins.
local function told_begun(tick, attempt, who)
  redis.call('LPUSH', RUNS, table.concat({decimal(tick), decimal(attempt), decimal(now), '0', 'r', who, ''}, '\t'))
  redis.call('LTRIM', RUNS, 0, 10)
  redis.call('PEXPIRE', RUNS, decimal(KEPT + 2 * period))
end

-- Tells how the run ended that has begun last, unless that was told. nil: it was not begun.
local function told_ended(how, text)
  local run, began, who = string.match(newest, '^(%d+\t%d+\t(%d+)\t)0\tr\t([^\t]*)\t$')
  if not run then return end
  newest = ''
  if not how then
    redis.call('LPOP', RUNS)
    return
  end
  local took = how == 'd' and 0 or math.max(0, now - began)
  redis.call('LSET', RUNS, 0, table.concat({run .. decimal(took), how, who, text}, '\t'))
end
