package robustness

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Excuse is what a fault explains. What is not named here is a violation also while the fault lasts.
type Excuse struct {
	// Overlap: two may trust a lock, or more permits than there are, and tokens may be out of order, from the
	// begin of the fault until so long after its end. 0: never.
	Overlap time.Duration
	// Order: waiters may be overtaken.
	Order bool
	// Grants may take so much longer, counted from the end of the fault. What is free then has an owner.
	Recovers time.Duration
	// Counts of plain permits and latches are lost, and barriers.
	Counts bool
	// Errors that callers may see, by a part of their text.
	Errors []string
}

// Fault is something that fails.
type Fault struct {
	Name    string
	On      []Topology
	Begin   func(s *scene, rng *rand.Rand) (end func())
	Lasts   [2]time.Duration // at least and at most
	Excuses Excuse
}

// The bounds that docs/guarantees.md names.
const (
	asksAgain = 2 * time.Second         // waiters ask every two seconds at least
	noticed   = 2500 * time.Millisecond // a slot that has moved
	settles   = 500 * time.Millisecond  // what reconnections and probes take beside that
)

var (
	everywhere = []Topology{Single, Cluster, Three, Sentinel}
	proxies    = []Topology{Single, Cluster, Three} // a sentinel names the servers themselves
)

// faults is the table: what can fail, and what that excuses.
var faults = []Fault{
	{
		Name: "kill a worker", On: everywhere, Begin: killWorker, Lasts: span(0, 0),
		Excuses: Excuse{Recovers: longestLease + asksAgain, Order: true}, // the dead first in a queue of permits: 2 s
	},
	{
		Name: "stop a worker", On: everywhere, Begin: stopWorker, Lasts: span(50, 2500),
		Excuses: Excuse{Recovers: longestLease + asksAgain, Order: true},
	},
	{
		Name: "kill normal connections", On: everywhere, Begin: killConnections("normal"), Lasts: span(0, 0),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true},
	},
	{
		Name: "kill subscriptions", On: everywhere, Begin: killConnections("pubsub"), Lasts: span(0, 0),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true},
	},
	{
		Name: "lose replies", On: proxies, Begin: loseReplies, Lasts: span(500, 1500),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true},
	},
	{
		Name: "late copies", On: proxies, Begin: lateCopies, Lasts: span(200, 1000),
		Excuses: Excuse{Recovers: longestLease + asksAgain + settles, Order: true}, // a copy that takes blocks as long as it was late
	},
	{
		Name: "silent network", On: proxies, Begin: silentNetwork, Lasts: span(50, 1500),
		Excuses: Excuse{Recovers: longestLease + asksAgain + 3*time.Second, Order: true}, // a silent server is given up after three seconds
	},
	{
		Name: "cut network", On: proxies, Begin: cutNetwork, Lasts: span(0, 0),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true},
	},
	{
		Name: "one-way network", On: proxies, Begin: oneWayNetwork, Lasts: span(100, 1000),
		Excuses: Excuse{Recovers: longestLease + asksAgain + 3*time.Second, Order: true},
	},
	{
		Name: "idle connections end", On: proxies, Begin: endIdle, Lasts: span(300, 1500),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true},
	},
	{
		Name: "slow network", On: proxies, Begin: slowNetwork, Lasts: span(200, 1500),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true},
	},
	{
		Name: "stop the server", On: proxies, Begin: stopServer, Lasts: span(20, 1800),
		Excuses: Excuse{Recovers: longestLease + asksAgain + settles, Order: true},
	},
	{
		Name: "client pause", On: everywhere, Begin: pauseClients, Lasts: span(50, 1000),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true},
	},
	{
		Name: "script flush", On: everywhere, Begin: command("SCRIPT", "FLUSH"), Lasts: span(0, 0),
		Excuses: Excuse{}, // invisible
	},
	{
		Name: "busy script", On: []Topology{Single}, Begin: refusal("BUSY"), Lasts: span(100, 800),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true},
	},
	{
		Name: "no disk", On: []Topology{Single}, Begin: refusal("MISCONF"), Lasts: span(100, 800),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true},
	},
	{
		Name: "loading", On: []Topology{Single}, Begin: refusal("LOADING"), Lasts: span(0, 0),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true},
	},
	{
		Name: "no primary", On: []Topology{Single}, Begin: refusal("MASTERDOWN"), Lasts: span(100, 800),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true},
	},
	{
		Name: "out of memory", On: everywhere, Begin: outOfMemory, Lasts: span(50, 500),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true, Errors: []string{"OOM"}},
	},
	{
		Name: "starved CPU", On: everywhere, Begin: starve, Lasts: span(300, 1000),
		Excuses: Excuse{Recovers: longestLease + asksAgain, Order: true},
	},
	{
		Name: "restart with its data", On: []Topology{Single, Three}, Begin: restart, Lasts: span(0, 300),
		Excuses: Excuse{Recovers: longestLease + asksAgain + settles, Order: true, Errors: []string{"LOADING"}},
	},
	{
		// Of redlock's servers one at a time comes back empty: the others are a majority.
		Name: "restart empty", On: []Topology{Single}, Begin: restartEmpty, Lasts: span(0, 300),
		Excuses: Excuse{Overlap: longestLease, Recovers: longestLease + asksAgain + settles, Order: true, Counts: true},
	},
	{
		Name: "flush all", On: []Topology{Single}, Begin: command("FLUSHALL"), Lasts: span(0, 0),
		Excuses: Excuse{Overlap: longestLease, Recovers: longestLease + asksAgain + settles, Order: true, Counts: true},
	},
	{
		Name: "delete a key", On: []Topology{Single}, Begin: deleteKey, Lasts: span(0, 0), // that concerns it alone
		Excuses: Excuse{Overlap: longestLease, Recovers: longestLease + asksAgain + settles, Order: true},
	},
	{
		// A hold of it is lost, as if it had been deleted. Who asks for it hears what is wrong.
		Name: "a key is replaced", On: []Topology{Single}, Begin: replaceKey, Lasts: span(20, 300),
		Excuses: Excuse{
			Overlap: longestLease, Recovers: longestLease + asksAgain + settles, Order: true,
			Errors: []string{"WRONGTYPE", "foreign"},
		},
	},
	{
		Name: "credentials rotate", On: []Topology{Single}, Begin: rotate, Lasts: span(20, 500),
		Excuses: Excuse{Recovers: asksAgain + settles, Order: true, Errors: []string{"WRONGPASS", "NOAUTH"}},
	},
	{
		// It costs a few hundredths of a second, and changes no order.
		Name: listening, On: []Topology{Single, Sentinel}, Begin: listen, Lasts: span(50, 1500),
		Excuses: Excuse{Recovers: settles},
	},
	{
		Name: "clock forward", On: []Topology{Single}, Begin: jump(false), Lasts: span(0, 0),
		Excuses: Excuse{Overlap: asksAgain + settles, Recovers: asksAgain + settles, Order: true, Counts: true},
	},
	{
		// What a process held that died just before is free a lease after somebody has asked, which is every two
		// seconds.
		Name: "clock back", On: []Topology{Single}, Begin: jump(true), Lasts: span(0, 0),
		Excuses: Excuse{Recovers: longestLease + 2*asksAgain + settles, Order: true, Counts: true},
	},
	{
		Name: "a slot moves", On: []Topology{Cluster}, Begin: moveSlot, Lasts: span(50, 500),
		Excuses: Excuse{Recovers: longestLease + noticed + settles, Order: true},
	},
	{
		Name: "failover", On: []Topology{Cluster}, Begin: failover, Lasts: span(500, 1000), // nothing is lost
		Excuses: Excuse{Recovers: longestLease + noticed + settles, Order: true},
	},
	{
		// Only who waits for replicas notices.
		Name: "stop a replica", On: []Topology{Cluster, Sentinel}, Begin: stopReplica, Lasts: span(50, 1500),
		Excuses: Excuse{},
	},
	{
		// Clients ask it for the primary, and another one where it is silent.
		Name: "stop a sentinel", On: []Topology{Sentinel}, Begin: stopSentinel, Lasts: span(50, 1500),
		Excuses: Excuse{},
	},
	{
		Name: "kill a sentinel", On: []Topology{Sentinel}, Begin: killSentinel, Lasts: span(0, 1000),
		Excuses: Excuse{},
	},
	{
		// The last writes may be lost.
		Name: "kill a primary", On: []Topology{Cluster, Sentinel}, Begin: killPrimary, Lasts: span(3500, 4500),
		Excuses: Excuse{Overlap: longestLease, Recovers: longestLease + noticed + 3*time.Second, Order: true, Counts: true},
	},
}

func span(least, most int) [2]time.Duration {
	return [2]time.Duration{time.Duration(least) * time.Millisecond, time.Duration(most) * time.Millisecond}
}

func faultNamed(name string) *Fault {
	n := slices.IndexFunc(faults, func(f Fault) bool { return f.Name == name })
	return &faults[n]
}

// drawFaults returns up to three faults of a topology.
func drawFaults(rng *rand.Rand, topology Topology) (names []string) {
	for _, n := range rng.Perm(len(faults)) {
		if len(names) < 3 && slices.Contains(faults[n].On, topology) {
			names = append(names, faults[n].Name)
		}
	}
	names = names[:1+rng.IntN(len(names))]
	if len(names) > 1 && (slices.Contains(names, "failover") || slices.Contains(names, "kill a primary")) {
		// A slot does not move to a replica.
		names = slices.DeleteFunc(names, func(name string) bool { return name == "a slot moves" })
	}
	return names
}

// has reports whether the plan has one of these faults.
func (p Plan) has(names ...string) bool {
	return slices.ContainsFunc(p.Faults, func(name string) bool { return slices.Contains(names, name) })
}

// Window is when a fault lasted. Object is -1 when it concerned all.
type Window struct {
	Name       string
	Object     int64
	Begin, End int64
	Excuses    Excuse
}
