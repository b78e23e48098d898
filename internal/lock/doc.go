// Package lock is what every lock is inside, of packages rlock, fairlock, spinlock and redlock, and either
// half of one of package rwlock: the kind, which tells the engine how to acquire and release one, and the
// methods that the root package's Lock shows.
package lock
