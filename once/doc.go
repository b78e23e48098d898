// Package once runs something once across processes: once for all ([New]), once for all callers that want it
// now ([Share]), once a tick ([Every]), or at the times of a schedule ([At]).
//
//	o, err := once.New(c, "migrate:42")
//	...
//	err = o.Do(ctx, func(ctx context.Context, run *once.Run) error { return migrate(ctx, run.Token()) })
//	// nil: it is done, by this process or another
//
//	token, err := once.Share(ctx, c, "token:7", func(ctx context.Context, run *once.Run) ([]byte, error) {
//		return refresh(ctx) // one of all callers in all processes does it, and all get its result
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
// process from writing elsewhere. A process that was stopped for longer than its lease does not know it. A
// process that was killed may have done all its work and recorded nothing. Therefore
//
//   - hand [Run.Token] to the store that the function writes to, and have it refuse a token that is smaller
//     than one it has seen. Then a stale run changes nothing;
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
//  1. To begin, the holder writes its token to the record. Redis refuses that when a greater token is there,
//     or when there is nothing to do any more: so a caller that is granted the lock too late learns it here.
//  2. To end, it writes the outcome, together with a check that the token in the record is still its own.
//
// Tokens grow, so each run that begins makes all runs before it stale, in one step. A holder that has lost
// the lock is not stale if no other run has begun before its end: its work is done, and counts. All steps can
// be repeated, because a token belongs to one run: a copy finds it and gets the same answer. A late copy
// finds that its run is over, and changes nothing.
//
// Callers that wait are waiters of the lock: they do not poll, and cost what waiters cost. When the lock is
// released the next process is granted it, takes the outcome, and passes the lock on.
//
// An outcome of Share has the server's time when its function returned. A caller is told that clock as it asks
// for the lock. It takes any outcome with a greater number, because that run ended after the caller
// had come. If there is none it runs the function itself. So a caller joins a run that is under way, and
// never takes an outcome from before it came.
//
// Of Every all processes look at the record when a tick is due. One of them is told to take the lock. The
// others are told when to look again: at the next tick, or when the lease of the running process would end.
// That is a hint that saves commands. The lock, and the record of the last tick, decide.
//
// While a name is paused (latchkey.Client.Pause) no run of it begins: Do and Share wait, and ticks are missed.
//
// The observer hears of the locks, as of any other, and of nothing more.
//
// # In Redis
//
// The keys of a name N (after the key prefix) are those of a lock N, and latchkey_once:{N},
// latchkey_share:{N} or latchkey_every:{N}; without the braces if N has some. So one name may be used with
// each of the three, and with locks: but all have one lock, and exclude each other. latchkey_runs:{N} has the last
// runs of a job, and latchkey_pause:{N} says that the name is paused.
package once
