package latchkey

// Must returns v, or panics with err if that is not nil. It is for primitives with constant names and options, as a
// package's variables or the fields of a struct:
//
//	orders := latchkey.Must(rlock.New(c, "orders"))
//	uploads := latchkey.Must(semaphore.New(c, "uploads", semaphore.WithCapacity(16)))
//
// A constructor sends nothing to Redis: it fails for a bad name or bad options, in every run. Do not give Must what
// Redis may refuse, as [Open].
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
