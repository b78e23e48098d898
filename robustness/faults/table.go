package faults

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/robustness/plan"
)

// Fault is something that fails.
type Fault struct {
	Name    string
	on      []plan.Topology
	begin   func(s *Scene, rng *rand.Rand) (end func())
	lasts   [2]time.Duration // at least and at most
	Excuses plan.Excuse
}

var (
	everywhere = []plan.Topology{plan.Single, plan.Cluster, plan.Three, plan.Sentinel}
	proxies    = []plan.Topology{plan.Single, plan.Cluster, plan.Three} // a sentinel names the servers themselves
)

// Table has what can fail, and what that excuses.
var Table = []Fault{
	{
		Name: "kill a worker", on: everywhere, begin: killWorker, lasts: span(0, 0),
		Excuses: plan.Excuse{Recovers: plan.LongestLease + plan.AsksAgain, Order: true}, // the dead first in a queue of permits: 2 s
	},
	{
		Name: "stop a worker", on: everywhere, begin: stopWorker, lasts: span(50, 2500),
		Excuses: plan.Excuse{Recovers: plan.LongestLease + plan.AsksAgain, Order: true},
	},
	{
		Name: "kill normal connections", on: everywhere, begin: killConnections("normal"), lasts: span(0, 0),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		Name: "kill subscriptions", on: everywhere, begin: killConnections("pubsub"), lasts: span(0, 0),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		Name: "lose replies", on: proxies, begin: loseReplies, lasts: span(500, 1500),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		Name: "late copies", on: proxies, begin: lateCopies, lasts: span(200, 1000),
		Excuses: plan.Excuse{Recovers: plan.LongestLease + plan.AsksAgain + plan.Settles, Order: true}, // a copy that takes blocks as long as it was late
	},
	{
		Name: "silent network", on: proxies, begin: silentNetwork, lasts: span(50, 1500),
		Excuses: plan.Excuse{Recovers: plan.LongestLease + plan.AsksAgain + 3*time.Second, Order: true}, // a silent server is given up after three seconds
	},
	{
		Name: "cut network", on: proxies, begin: cutNetwork, lasts: span(0, 0),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		Name: "one-way network", on: proxies, begin: oneWayNetwork, lasts: span(100, 1000),
		Excuses: plan.Excuse{Recovers: plan.LongestLease + plan.AsksAgain + 3*time.Second, Order: true},
	},
	{
		Name: "idle connections end", on: proxies, begin: endIdle, lasts: span(300, 1500),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		Name: "slow network", on: proxies, begin: slowNetwork, lasts: span(200, 1500),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		Name: "stop the server", on: proxies, begin: stopServer, lasts: span(20, 1800),
		Excuses: plan.Excuse{Recovers: plan.LongestLease + plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		Name: "client pause", on: everywhere, begin: pauseClients, lasts: span(50, 1000),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		Name: "script flush", on: everywhere, begin: command("SCRIPT", "FLUSH"), lasts: span(0, 0),
		Excuses: plan.Excuse{}, // invisible
	},
	{
		Name: "busy script", on: []plan.Topology{plan.Single}, begin: refusal("BUSY"), lasts: span(100, 800),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		Name: "no disk", on: []plan.Topology{plan.Single}, begin: refusal("MISCONF"), lasts: span(100, 800),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		Name: "loading", on: []plan.Topology{plan.Single}, begin: refusal("LOADING"), lasts: span(0, 0),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		Name: "no primary", on: []plan.Topology{plan.Single}, begin: refusal("MASTERDOWN"), lasts: span(100, 800),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		Name: "out of memory", on: everywhere, begin: outOfMemory, lasts: span(50, 500),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true, Errors: []string{"OOM"}},
	},
	{
		Name: "starved CPU", on: everywhere, begin: starve, lasts: span(300, 1000),
		Excuses: plan.Excuse{Recovers: plan.LongestLease + plan.AsksAgain, Order: true},
	},
	{
		Name: "restart with its data", on: []plan.Topology{plan.Single, plan.Three}, begin: restart, lasts: span(0, 300),
		Excuses: plan.Excuse{Recovers: plan.LongestLease + plan.AsksAgain + plan.Settles, Order: true, Errors: []string{"LOADING"}},
	},
	{
		// Of redlock's servers one at a time comes back empty: the others are a majority.
		Name: "restart empty", on: []plan.Topology{plan.Single}, begin: restartEmpty, lasts: span(0, 300),
		Excuses: plan.Excuse{Overlap: plan.LongestLease, Recovers: plan.LongestLease + plan.AsksAgain + plan.Settles, Order: true, Counts: true},
	},
	{
		Name: "flush all", on: []plan.Topology{plan.Single}, begin: command("FLUSHALL"), lasts: span(0, 0),
		Excuses: plan.Excuse{Overlap: plan.LongestLease, Recovers: plan.LongestLease + plan.AsksAgain + plan.Settles, Order: true, Counts: true},
	},
	{
		Name: "delete a key", on: []plan.Topology{plan.Single}, begin: deleteKey, lasts: span(0, 0), // that concerns it alone
		Excuses: plan.Excuse{Overlap: plan.LongestLease, Recovers: plan.LongestLease + plan.AsksAgain + plan.Settles, Order: true},
	},
	{
		// A hold of it is lost, as if it had been deleted. Who asks for it hears what is wrong.
		Name: "a key is replaced", on: []plan.Topology{plan.Single}, begin: replaceKey, lasts: span(20, 300),
		Excuses: plan.Excuse{
			Overlap: plan.LongestLease, Recovers: plan.LongestLease + plan.AsksAgain + plan.Settles, Order: true,
			Errors: []string{"WRONGTYPE", "foreign"},
		},
	},
	{
		Name: "credentials rotate", on: []plan.Topology{plan.Single}, begin: rotate, lasts: span(20, 500),
		Excuses: plan.Excuse{Recovers: plan.AsksAgain + plan.Settles, Order: true, Errors: []string{"WRONGPASS", "NOAUTH"}},
	},
	{
		// It costs a few hundredths of a second, and changes no order.
		Name: Listening, on: []plan.Topology{plan.Single, plan.Sentinel}, begin: listen, lasts: span(50, 1500),
		Excuses: plan.Excuse{Recovers: plan.Settles},
	},
	{
		Name: "clock forward", on: []plan.Topology{plan.Single}, begin: jump(false), lasts: span(0, 0),
		Excuses: plan.Excuse{Overlap: plan.AsksAgain + plan.Settles, Recovers: plan.AsksAgain + plan.Settles, Order: true, Counts: true},
	},
	{
		// What a process held that died just before is free a lease after somebody has asked, which is every two
		// seconds.
		Name: "clock back", on: []plan.Topology{plan.Single}, begin: jump(true), lasts: span(0, 0),
		Excuses: plan.Excuse{Recovers: plan.LongestLease + 2*plan.AsksAgain + plan.Settles, Order: true, Counts: true},
	},
	{
		Name: "a slot moves", on: []plan.Topology{plan.Cluster}, begin: moveSlot, lasts: span(50, 500),
		Excuses: plan.Excuse{Recovers: plan.LongestLease + plan.Noticed + plan.Settles, Order: true},
	},
	{
		Name: "failover", on: []plan.Topology{plan.Cluster}, begin: failover, lasts: span(500, 1000), // nothing is lost
		Excuses: plan.Excuse{Recovers: plan.LongestLease + plan.Noticed + plan.Settles, Order: true},
	},
	{
		// Only who waits for replicas notices.
		Name: "stop a replica", on: []plan.Topology{plan.Cluster, plan.Sentinel}, begin: stopReplica, lasts: span(50, 1500),
		Excuses: plan.Excuse{},
	},
	{
		// Clients ask it for the primary, and another one where it is silent.
		Name: "stop a sentinel", on: []plan.Topology{plan.Sentinel}, begin: stopSentinel, lasts: span(50, 1500),
		Excuses: plan.Excuse{},
	},
	{
		Name: "kill a sentinel", on: []plan.Topology{plan.Sentinel}, begin: killSentinel, lasts: span(0, 1000),
		Excuses: plan.Excuse{},
	},
	{
		// The last writes may be lost.
		Name: "kill a primary", on: []plan.Topology{plan.Cluster, plan.Sentinel}, begin: killPrimary, lasts: span(3500, 4500),
		Excuses: plan.Excuse{Overlap: plan.LongestLease, Recovers: plan.LongestLease + plan.Noticed + 3*time.Second, Order: true, Counts: true},
	},
}

func span(least, most int) [2]time.Duration {
	return [2]time.Duration{time.Duration(least) * time.Millisecond, time.Duration(most) * time.Millisecond}
}

// Named returns the fault of a name, which the table has.
func Named(name string) *Fault {
	n := slices.IndexFunc(Table, func(f Fault) bool { return f.Name == name })
	return &Table[n]
}

// Draw returns up to three faults of a topology.
func Draw(rng *rand.Rand, topology plan.Topology) (names []string) {
	for _, n := range rng.Perm(len(Table)) {
		if len(names) < 3 && slices.Contains(Table[n].on, topology) {
			names = append(names, Table[n].Name)
		}
	}
	names = names[:1+rng.IntN(len(names))]
	if len(names) > 1 && (slices.Contains(names, "failover") || slices.Contains(names, "kill a primary")) {
		// A slot does not move to a replica.
		names = slices.DeleteFunc(names, func(name string) bool { return name == "a slot moves" })
	}
	return names
}
