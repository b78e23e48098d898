// Package once runs something once across processes: once for all ([New]), once for all who want it now
// ([Share]), or once a tick ([Every]).
//
//	o, err := once.New(c, "migrate:42")
//	...
//	err = o.Do(ctx, func(ctx context.Context, run *once.Run) error { return migrate(ctx, run.Token()) })
//	// nil: it is done, by whomever
//
//	token, err := once.Share(ctx, c, "token:7", func(ctx context.Context, run *once.Run) ([]byte, error) {
//		return refresh(ctx) // one of all callers in all processes does it, the others get what it got
//	})
//
//	job, err := once.Every(c, "report", time.Minute, func(ctx context.Context, run *once.Run) error {
//		return report(ctx, run.Tick())
//	}, once.WithMissed(once.RunOnce))
//	...
//	err = job.Run(ctx) // in each process, until ctx ends
//
// # Guarantees
//
// All is effectively once, given fencing. A function runs while its process holds the lock of the name. Its
// end is recorded only if no other run has begun since. So of all runs one counts. But no lock can stop a
// process from writing to somewhere else: a process that was stopped for longer than its lease does not know
// it, and a process that was killed may have done all its work and recorded nothing. Therefore
//
//   - hand [Run.Token] to whatever the function writes to, which refuses a token that is smaller than one it
//     has seen. Then a stale run changes nothing;
//   - do the work in one step that can be repeated: for a tick, a row whose key is the tick. Then a run that
//     was killed between its last write and its record is repeated without harm.
//
// Without the first, two runs may write at the same time after a stall that is longer than the lease. Without
// the second, work may be done twice after a crash. Neither happens while no process dies or is stopped, and
// Redis keeps its data. A failover can lose what was recorded last, which is then run again.
//
// # How it works
//
// The lock of the name decides who runs: package rlock's for [Once] and Share, package fairlock's for Every.
// A record beside it decides what counts. It has the fencing token of the run that has begun last.
//
//  1. To begin, the holder writes its token to the record. That is refused when a greater token is there, or
//     when there is nothing to do any more: so who is granted the lock too late learns it here.
//  2. To end, it writes the outcome, together with a check that the token in the record is still its own.
//
// Tokens grow, so each run that begins makes all runs before it stale, in one step. A holder that has lost
// the lock but before whose end nobody else has begun is not stale: its work is done, and counts. All steps
// can be repeated, because a token belongs to one run: a copy finds it and gets the same answer. A late copy
// finds that its run is over, and changes nothing.
//
// Those who wait are waiters of the lock: they do not poll, and cost what waiters cost. When the lock is
// released the next process is granted it, takes the outcome, and passes on.
//
// A run of Share has a number that grows with each outcome. Who comes reads the number first, and then waits
// for the lock. It takes any outcome with a greater number: that run ended after it had come. If there is
// none it runs the function itself. So a caller joins a run that is under way, and never takes what was over
// before it came.
//
// Of Every all processes look at the record when a tick is due. One of them is told to take the lock, the
// others when to look again: at the next tick, or when the lease of who runs would end. That is a hint that
// saves commands. The lock, and the record of the last tick, decide.
//
// Hooks and the observer hear of the locks, as of any other. Nothing more is told them.
//
// # In Redis
//
// The keys of a name N (after the key prefix) are those of a lock N, and latchkey_once:{N},
// latchkey_share:{N} or latchkey_every:{N}; without the braces if N has some. So one name may be used with
// each of the three, and with locks: but all have one lock, and exclude each other.
package once
