// Package once runs something once across processes: once for all ([New]), once for all callers that want it now
// ([Share]), once a tick ([Every]), or at the times of a schedule ([At]).
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
// A function runs while its process holds the lock of the name, and only one run counts. But no lock stops a process
// from writing elsewhere. After a stop that is longer than the lease, two runs may write at the same time. After a crash
// or a failover, work that was done may be done again. Hand [Run.Token] to the store that the function writes
// to, and let it refuse smaller tokens. Do the work in one step that can be repeated: for a tick, a row whose key is
// the tick.
//
// Callers wait for the lock without polling. While a name is paused ([latchkey.Client.Pause]) no run of it begins: Do
// and Share wait, and ticks are missed.
//
// All that is done under one name has one lock, and excludes each other. docs/operations.md has the keys.
package once
