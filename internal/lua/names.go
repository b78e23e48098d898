package lua

import (
	"slices"
	"strings"
)

// part is a key or a channel that follows from a name. The scripts know it as a local.
type part struct {
	local string
	of    func(name string, sharded bool) string
}

func beside(local, prefix string) part {
	return part{local, func(name string, _ bool) string { return companion(prefix, name) }}
}

// pause is the key beside a name that says whether it is paused: see shared/pause.lua.
var pause = beside("PAUSE", "latchkey_pause")

// parts are the keys of each family beside the name, in the order of [Keys.All]. In Redis, some are the
// prefix of other keys, or a channel.
var parts = [families][]part{
	Locks:     {beside("QUEUE", "latchkey_queue"), beside("TOKEN", "redisson_lock_token")},
	ReadWrite: {beside("QUEUE", "latchkey_queue"), beside("TOKEN", "redisson_lock_token"), beside("STATE", "latchkey_rwlock")},
	Leased: append(permits(),
		part{"TIMEOUTS", func(name string, _ bool) string { return suffixed(name, "timeout") }},
		beside("HOLDERS", "latchkey_holders")),
	Fence:     {beside("COMPANION", "latchkey_fence")},
	Leader:    {beside("QUEUE", "latchkey_queue"), beside("RECORD", "latchkey_leader"), pause},
	Plain:     permits(),
	Latch:     {beside("RECORD", "latchkey_latch"), beside("DONE", "latchkey_done")},
	Barrier:   {beside("ARRIVALS", "latchkey_arrivals"), beside("DONE", "latchkey_done"), beside("MEMBERS", "latchkey_members")},
	RunOnce:   {beside("RUN", "latchkey_once"), pause},
	RunShared: {beside("RUN", "latchkey_share"), pause},
	RunTicks:  {beside("RUN", "latchkey_every"), pause, beside("RUNS", "latchkey_runs")},
	Pauses:    {pause},
}

// ofLock are the keys that scripts of a family use of the lock of the same name. Its own [Keys] has them.
var ofLock = [families][]part{RunOnce: parts[Locks], RunShared: parts[Locks], RunTicks: parts[Locks]}

func permits() []part {
	return []part{
		beside("QUEUE", "latchkey_queue"), beside("TOKEN", "latchkey_token"), beside("CHANNEL", "redisson_sc"),
		beside("DONE", "latchkey_done"),
	}
}

// inboxes are what a client's inbox begins with.
var inboxes = [families]part{
	Locks: inbox("latchkey_inbox"), ReadWrite: inbox("latchkey_inbox"), Leader: inbox("latchkey_inbox"),
	RunOnce: inbox("latchkey_inbox"), RunShared: inbox("latchkey_inbox"), RunTicks: inbox("latchkey_inbox"),
	// A lock of the same name has an inbox of its own, confirmed by itself.
	Leased: inbox("latchkey_inbox:permits"), Plain: inbox("latchkey_inbox:permits"),
}

func inbox(prefix string) part {
	return part{"INBOX", func(name string, sharded bool) string {
		if sharded {
			return companion(prefix, name) + ":"
		}
		return Inbox("")
	}}
}

// news are the channels on which all waiters of a latch or barrier hear of changes.
var news = [families]part{
	Latch:   {"NEWS", latchNews},
	Barrier: beside("NEWS", "latchkey_barrier"),
	Leader:  beside("NEWS", "latchkey_leader"),
}

// released are the channels on which those listen for a release who are not queued: Redisson's.
var released = [families]part{
	Locks:     beside("RELEASED", "redisson_lock__channel"),
	RunOnce:   beside("RELEASED", "redisson_lock__channel"),
	RunShared: beside("RELEASED", "redisson_lock__channel"),
	RunTicks:  beside("RELEASED", "redisson_lock__channel"),
	ReadWrite: beside("RELEASED", "redisson_rwlock"),
	Leased:    beside("RELEASED", "redisson_sc"),
	Plain:     beside("RELEASED", "redisson_sc"),
}

// What the scripts use beside a lock or a semaphore that takes turns with processes of Redisson: see
// shared/turns.lua.
var (
	turns   = beside("TURNS", "latchkey_turns")
	holdoff = beside("HOLDOFF", "latchkey_holdoff")
	ear     = beside("EAR", "latchkey_ear")
	fair    = beside("FAIR", "redisson_lock_queue")
)

// pace is the key beside a queue that says how soon those in it must ask: see shared/pace.lua.
var pace = beside("PACE", "latchkey_pace")

// called is the key beside a queue that says which clients in it have not asked since they were called: see
// shared/call.lua.
var called = beside("CALLED", "latchkey_called")

// leases are what the leases of readers begin with: see rwlock/state.lua.
var leases = part{"LEASES", func(name string, _ bool) string { return suffixed(name, "") }}

// variant says which texts of the scripts are for a name.
type variant uint8

// The bits of a variant.
const (
	braced   variant = 1 << iota // the name has braces: so its companions need none
	sharded                      // the client is one of a cluster
	redisson                     // its processes take turns with those of Redisson
	careful                      // the slot of the name may be moving
	variants variant = 1 << iota
)

func variantOf(name string, isSharded bool) (v variant) {
	if strings.Contains(name, "{") {
		v |= braced
	}
	if isSharded {
		v |= sharded
	}
	return v
}

// expression is the Lua of a part: it concatenates NAME with what stands around it. It comes from the part of
// a name that stands for any other.
func (p part) expression(v variant) string {
	some := "\x00"
	if v&braced != 0 {
		some = "{" + some
	}
	before, after, found := strings.Cut(p.of(some, v&sharded != 0), some)
	text := "'" + before + "'"
	if found {
		text = "'" + before + "' .. NAME .. '" + after + "'"
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, "'' .. "), " .. ''")
}

// keysOf are the locals that a script may define, with their values.
func keysOf(family Family, v variant) map[string]string {
	keys := map[string]string{"TIMEOUTS": "nil", "HOLDERS": "nil"} // plain permits have none
	for _, p := range slices.Concat(parts[family], ofLock[family], []part{inboxes[family], news[family], released[family], leases, pace, called, turns, holdoff, ear, fair}) {
		if p.of != nil {
			keys[p.local] = p.expression(v)
		}
	}
	return keys
}

// prelude is what stands before every script for one name.
func prelude(family Family, v variant) string {
	if v&sharded == 0 { // where there are no slots, none moves
		return "local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'PUBLISH', 'NUMSUB'\n"
	}
	text := "local NAME, VERB, NUMSUB, SLOTS, moving = KEYS[1], 'SPUBLISH', 'SHARDNUMSUB', true\n"
	if v&careful == 0 {
		return text
	}
	var names []string
	for _, p := range slices.Concat(parts[family], ofLock[family]) {
		names = append(names, p.local)
	}
	text += "-- keys " + strings.Join(names, " ") + "\nlocal COMPANIONS = {" + strings.Join(names, ", ") + "}\n"
	if family == ReadWrite { // the lease of a reader
		text += "-- keys LEASES\nif ARGV[1] ~= '' then COMPANIONS[4] = LEASES .. ARGV[1] .. ':rwlock_timeout:1' end\n"
	}
	return text + "-- include shared/moving.lua\n"
}

// moves ends a script, before it has done anything, when the slot of the name moves and a companion is not here. It
// stands where a text says so, or in front.
func moves(family Family, v variant) string {
	if v&sharded == 0 || v&careful != 0 {
		return ""
	}
	keys := "NAME"
	for _, p := range slices.Concat(parts[family], ofLock[family]) {
		keys += ", " + p.expression(v)
	}
	if family == ReadWrite { // the lease of a reader
		keys += ", ARGV[1] == '' and NAME or " + leases.expression(v) + " .. ARGV[1] .. ':rwlock_timeout:1'"
	}
	return "do\nlocal all = redis.pcall('EXISTS', " + keys + ")\n-- inline shared/moves.lua\n" +
		"if moves then error('" + tryAgain + "a key may be on the other side') end\nend\n"
}
