// Package grant is the engine of everything that grants: locks and semaphores. A name has a [Queue] on each client. A
// tenure is one owner id in that queue. When Redis grants the tenure, the tenure becomes a [Hold]. Release, local
// hand-off and the wait for replicas are in this package. The waiters are in package wait, the lease is in package
// lease, and every step that is atomic in Redis is in package lua.
//
// The engine knows no primitive. A [Kind] is the difference between primitives: how a tenure is taken and released in
// Redis, and a few constants. TestANewPrimitive makes a primitive in a hundred lines.
//
// docs/protocol.md has the rules that prevent two faults: a lost grant, and a lock taken for an owner that is gone.
package grant
