package latchkey

// Must returns v, or panics with err. It is for primitives with constant names and options: a constructor sends
// nothing to Redis, so it fails in every run or in none. Do not give Must what Redis may refuse, as [Open].
//
//	orders := latchkey.Must(rlock.New(c, "orders"))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
