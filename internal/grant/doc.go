// Package grant is the engine of everything that grants: locks and semaphores. A name has a [Queue] on each
// client. A tenure is one owner id in it, and becomes a [Hold] when Redis grants it. Release, local hand-off
// and waiting for replicas are here as well. The waiters themselves are in package wait, the lease in package
// lease, and every step that is atomic in Redis in package lua.
//
// The engine knows no primitive. What differs between them is a [Kind]: how a tenure is taken and released in
// Redis, and a few constants. TestANewPrimitive makes one in a hundred lines.
//
// docs/protocol.md has the rules that keep a grant from being lost and a lock from being taken for an owner that is gone.
package grant
