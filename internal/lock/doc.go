// Package lock is the inside of every lock: of packages rlock, fairlock, spinlock and redlock, and of each half in
// package rwlock. It has the kind, which tells the engine how to acquire and release a lock, and the methods that the
// root package's Lock shows.
package lock
