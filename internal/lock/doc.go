// Package lock is what both locks are inside, those of package rlock and of package fairlock: their kind,
// which tells the engine how to acquire and release one, and the methods that the root package's Lock
// shows.
package lock
