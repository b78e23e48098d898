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
// A function runs while its process holds the lock of the name. Its end is recorded only if no other run has begun
// since. So of all runs one counts. But no lock stops a process from writing elsewhere: a process that was stopped for
// longer than its lease does not know it, and a process that was killed may have done all its work and recorded
// nothing. Therefore
//
//   - hand [Run.Token] to the store that the function writes to, and let it refuse tokens that are smaller than one it has
//     seen. Otherwise two runs may write at the same time after such a stop.
//   - do the work in one step that can be repeated: for a tick, a row whose key is the tick. Otherwise work may be done
//     twice after a crash.
//
// Neither happens while no process dies or is stopped, and Redis keeps its data. A failover can lose the last record:
// then the function runs again.
//
// Callers that wait are waiters of the lock: they do not poll. A caller of Share gets the outcome of a run that ended
// after the call had begun, by the server's clock. Of a job, one process takes the lock of a tick, and the others look
// again at the next tick, or when the lease of that process would end. docs/protocol.md has the steps.
//
// While a name is paused (latchkey.Client.Pause) no run of it begins: Do and Share wait, and ticks are missed. The
// observer hears of the locks, and of nothing more.
//
// # In Redis
//
// The keys of a name N (after the key prefix) are the keys of a lock N, and latchkey_once:{N}, latchkey_share:{N} or
// latchkey_every:{N}, without the braces if N has some. So you may use one name for each of the three, and for locks:
// but all have one lock, and exclude each other. latchkey_runs:{N} has the last runs of a job, and latchkey_pause:{N}
// says that the name is paused.
package once
