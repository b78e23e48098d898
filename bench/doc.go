// Command bench compares latchkey with the libraries that a user would pick instead, on the same work, in one
// run.
//
// Every scenario runs in worker processes, which are this binary itself, on a redis-server of its own. The
// contenders take turns, round by round, so that what disturbs the machine disturbs all of them; medians are
// reported, with the spread. The floors are the least that the same thing can cost: two scripts that do
// nothing for a lock and an unlock, and a message from one process to another for a hand-off.
//
// With --instructions it counts what the server executes instead, under callgrind: that does not vary with
// the machine.
package main
