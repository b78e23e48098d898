package robustness

import (
	"github.com/latchkey-go/latchkey/robustness/plan"
)

// Mutation is a fault that is put into a copy of the code, and that the harness must find.
type Mutation struct {
	Name  string
	Edits []Edit
	Focus Focus // the faults under which it shows, where it shows under few
}

// Edit replaces a text, which is in the file once.
type Edit struct{ File, Old, New string }

// mutate returns a mutation of one edit.
func mutate(name, file, old, text string) Mutation {
	return Mutation{Name: name, Edits: []Edit{{file, old, text}}}
}

// under returns the mutation with faults under which it shows.
func (m Mutation) under(faults ...string) Mutation {
	m.Focus.Faults = faults
	return m
}

// on returns the mutation with a topology on which it shows.
func (m Mutation) on(topology plan.Topology) Mutation {
	m.Focus.Topology = topology
	return m
}

const (
	luaOfLocks    = "internal/lua/lock/"
	luaOfHalves   = "internal/lua/rwlock/"
	luaOfPermits  = "internal/lua/permit/"
	luaOfLatches  = "internal/lua/latch/"
	luaOfBarriers = "internal/lua/barrier/"
	luaOfRuns     = "internal/lua/once/"
	luaOfTicks    = "internal/lua/every/"
	luaOfAll      = "internal/lua/shared/"
)

// Mutations are those that the harness must find.
var Mutations = []Mutation{
	// Locks.
	mutate("a release forgets the queue", luaOfLocks+"release.lua", "hand_over(head)\nreturn owned", "redis.call('DEL', NAME)\nreturn owned").under(Calm),
	mutate("a release does not check the owner", luaOfLocks+"release.lua", "  if redis.call('EXISTS', NAME) == 1 then return 0 end\n", "").
		under("lose replies", "late copies"),
	mutate("a release grants to the last in the queue", luaOfLocks+"release.lua", "redis.pcall('LPOP', QUEUE)", "redis.pcall('RPOP', QUEUE)").under(Calm),
	mutate("an acquire takes what is held", luaOfLocks+"contend.lua", "local free = not held[1]\n", "local free = true\n"),
	mutate("a grant is not told", luaOfLocks+"hand.lua", "redis.pcall(VERB, inbox,", "local _ = table.concat({VERB, inbox}) .. tostring("),
	mutate("an offer keeps the old owner", luaOfLocks+"offer.lua", "former = {ARGV[7]}\n", "former = {}\n"),
	mutate("who leaves frees what others hold", luaOfLocks+"giveback.lua",
		"if held[i] then free, former = true, {ids[i]} end", "free, former = true, {ids[i]}"),
	mutate("a renewal does not renew", luaOfLocks+"renew.lua", "    redis.call('PEXPIRE', key, lease) --", "    --"),
	mutate("tokens do not follow the last one", luaOfAll+"behind.lua", "if before > floor then", "if before < floor then"),
	mutate("tokens do not follow the floor", luaOfAll+"behind.lua", "floor = tonumber(floor) or 0\n", "floor = 0\n").
		under("flush all", "clock back"),
	mutate("a grant by message has no lease", luaOfLocks+"hand.lua", "redis.call('PEXPIRE', NAME, ms)\n", "").
		under("kill a worker"),

	// Read-write locks.
	mutate("writers join readers", luaOfHalves+"state.lua",
		"return not mode or reads and mode == 'read'\nend", "return not mode or mode == 'read'\nend"),
	mutate("the first reader that leaves frees the lock", luaOfHalves+"release.lua", "elseif fields == 2 then", "elseif fields >= 2 then"),
	mutate("a downgrade leaves no reader", luaOfHalves+"downgrade.lua", "'mode', 'read', id, '1')", "'mode', 'read')"),
	mutate("grants of read-write locks are not told", luaOfHalves+"grant.lua", "for _, m in ipairs(messages) do tell_grant", "for _, m in ipairs({}) do tell_grant"),
	mutate("a reader's renewal does not renew", luaOfHalves+"renew.lua", "redis.pcall('PEXPIRE', timeout, lease)", "redis.pcall('EXISTS', timeout)"),
	mutate("a release of a writer keeps the queue waiting", luaOfHalves+"release.lua", "give_back({id})\nreturn 1", "former[1] = id .. ':write'\nformer[2] = id\ndrop_former()\nreturn 1"),
	{Name: "two halves are a basket of locks", Edits: []Edit{
		{"rwlock/kind.go", "	Downgrader: func(q *grant.Queue)", "	Together:   func(q *grant.Queue) grant.Together { return together{q} },\n	Downgrader: func(q *grant.Queue)"},
		{"rwlock/kind.go", "type downgrader struct", `type together struct{ queue *grant.Queue }

func (b together) TakeTogether(ctx context.Context, parts []lua.Part, all bool, until int64) ([]lua.Acquired, int, error) {
	return b.queue.At.Client.Conn.TakeBasket(ctx, parts, all, until)
}

func (b together) ReleaseTogether(ctx context.Context, parts []lua.Part) ([]bool, error) {
	return b.queue.At.Client.Conn.ReleaseBasket(ctx, parts)
}

type downgrader struct`},
		{"internal/grant/basket.go", "p.Queue.mayGoTogether() && !p.Shared &&", "p.Queue.kind.Together != nil &&"},
	}},

	{Name: "readers have the token of before the writers'", Edits: []Edit{
		{luaOfHalves + "state.lua", "  if reserved > 0 then number = decimal(number + reserved) end\n", ""},
		{luaOfHalves + "state.lua", "if mode ~= 'read' or not number", "if not number"},
		{luaOfHalves + "take.lua", "if there == 0 then", "if there == 0 and not reads then"},
	}},

	// Several locks at once.
	mutate("a basket takes what is held", "internal/lua/basket/take.lua", "if redis.call('EXISTS', NAME, QUEUE) > 0 then", "if redis.call('EXISTS', QUEUE) > 0 then"),
	mutate("a basket is not given back", "internal/lua/basket/release.lua", "waited and 'HEXISTS' or 'HDEL'", "'HEXISTS'"),
	mutate("several are waited for in the wrong order", "multilock/multilock.go", "cmp.Compare(a.Key(), b.Key())", "cmp.Compare(b.Key(), a.Key())"),

	mutate("a basket is given back to nobody who waits", "internal/lua/basket/release.lua", "then hand_over() end", "then redis.call('HDEL', NAME, given[3 * i + 1]) end"),

	// Go.
	mutate("a lease is trusted for twice its time", "internal/lease/keeper.go", "	until := moment.Add(d - Margin)\n", "	until := moment.Add(2*d - Margin)\n").
		under("stop a worker", "silent network"),
	mutate("local hand-offs have one token", "internal/grant/handoff.go", "	o.token++\n", ""),
	mutate("the first reader of a process leaves for all", "internal/grant/share.go", "	if t.turn != nil {\n		return false\n	}\n", ""),
	mutate("what was acquired too late is not given back", "internal/wait/answers.go", "		q.cancel(w)\n	}\n}", "		q.forget(w)\n	}\n}"),
	mutate("redlock is held on less than a majority", "redlock/redlock.go", "majority: len(clients)/2 + 1,", "majority: len(clients) / 2,").on(plan.Three),

	// Permits.
	mutate("one permit more than there are, when it is quick", luaOfPermits+"quick.lua", "and free - demand >= 0) then", "and free - demand >= -1) then"),
	mutate("one permit more than there are, from the queue", luaOfPermits+"queue.lua", "elseif n <= free then", "elseif n <= free + 1 then"),
	mutate("one permit more than there are, in a batch", luaOfPermits+"trade.lua", "if free and free >= n and (drains", "if free and free + 1 >= n and (drains"),
	mutate("a partial release gives back all", luaOfPermits+"transaction.lua", "    add(record.n - keep)\n", "    add(record.n)\n"),
	mutate("small requests pass large ones", luaOfPermits+"queue.lua", "      if held_up and not aside and not passes then break end\n", "").under(Calm),
	mutate("permits are reclaimed before their lease is over", luaOfPermits+"leased.lua", "'-inf', decimal(ms), 'LIMIT'", "'-inf', decimal(ms + 280), 'LIMIT'"),
	mutate("permits are not renewed", luaOfPermits+"renew.lua", "    redis.call('ZADD', timeouts, 'XX', unpack(permits))\n", ""),
	mutate("grants of permits are not told", luaOfPermits+"queue.lua", "      tell_grant(client, KIND,", "      local _ = false and tell_grant(client, KIND,"),
	mutate("a capacity is one more than was set", luaOfPermits+"capacity.lua", "local goal = n\n", "local goal = n + 1\n"),
	mutate("one permit more is added", luaOfPermits+"capacity.lua", "goal = total() + n end", "goal = total() + n + 1 end"),
	mutate("one plain permit more than there are", luaOfPermits+"count.lua", "(not mode or free - n >= 0)", "(not mode or free - n >= -1)"),
	mutate("a repeated release of plain permits counts again", luaOfPermits+"count.lua",
		"elseif redis.call('SET', prefix .. id, n, 'PX', '600000', 'NX') then", "elseif true then").under("lose replies"),

	// Latches.
	mutate("a count is lost", luaOfLatches+"quick.lua", "redis.call('DECRBY', NAME, ARGV[3])", "redis.call('DECRBY', NAME, 1)"),
	mutate("a latch is set while it is shut", luaOfLatches+"set.lua", "local may = latch.phase ~= 's' and (", "local may = ("),
	mutate("a participant counts twice", luaOfLatches+"count.lua", "redis.call('HEXISTS', RECORD, participant) == 1", "redis.call('HEXISTS', RECORD, participant) == 2"),

	mutate("nobody is told that a latch opens", luaOfLatches+"count.lua", "    publish(ZERO_COUNT)\n", ""),

	// Barriers.
	mutate("a barrier opens one party early", luaOfBarriers+"one.lua", "barrier.waiting + 1 >= parties", "barrier.waiting + 2 >= parties"),
	mutate("two parties have one index", luaOfBarriers+"one.lua", "record(decimal(generation) .. ':' .. index)", "index = 0\nrecord(decimal(generation) .. ':' .. index)"),
	mutate("nobody is told that a barrier opens", luaOfBarriers+"one.lua", "    advance()\n    over = true\n", "    advance()\n"),
	mutate("commands take effect twice", luaOfAll+"once.lua", "  if not outcome then return nil end\n", "  do return nil end\n").
		under("lose replies"),

	// What is run once, leaders, writes with tokens.
	{Name: "what is done runs again", Edits: []Edit{
		{luaOfRuns + "begun.lua", "if phase == 'o' and over > since then", "if phase == 'o' and since ~= 0 and over > since then"},
		{luaOfRuns + "acquire.lua", "if phase == 'o' and over > since then", "if phase == 'o' and since ~= 0 and over > since then"},
	}},
	mutate("a stale run is recorded", luaOfRuns+"finish.lua", "if token ~= mine then\n", "if false then\n").
		under("stop a worker"),
	mutate("who comes late is given what was over", luaOfRuns+"arrival.lua", "return math.max(over, micros)", "return 1"),
	mutate("attempts are not counted", luaOfRuns+"begun.lua", "'attempt', decimal(attempt + 1)", "'attempt', '1'"),
	mutate("a tick is not over", luaOfTicks+"finish.lua", "  pass(tick)\n", ""),
	{Name: "a pause holds up no tick", Edits: []Edit{
		{luaOfTicks + "due.lua", "if paused > 0 then", "if false then"},
		{luaOfTicks + "begun.lua", "  if paused > 0 then\n", "  if false then\n"},
	}},
	mutate("the last of all missed ticks is run alone", luaOfTicks+"begun.lua", "tick, missed = first_of_all(newest)", "tick = newest"),
	{Name: "a leader does not look at the clock", Edits: []Edit{
		{"leader/term.go", "context.WithCancelCause(hold.Context())", "context.WithCancelCause(context.WithoutCancel(hold.Context()))"},
		{"leader/term.go", "	left := t.hold.Remaining()\n", "	left := t.hold.Remaining() + time.Minute\n"},
		{"leader/term.go", "			t.end(t.hold.Err())\n			t.overrun()", "			t.overrun()"},
	}, Focus: Focus{Faults: []string{"stop a worker"}}},
	mutate("a write with a smaller token is done", "internal/lua/fence/check.lua", "if token > ARGV[1] then", "if token < ARGV[1] and false then").
		under("late copies"),
}
