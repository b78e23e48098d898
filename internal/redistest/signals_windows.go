package redistest

import "syscall"

// The signals that stop a process, and have it go on. Windows has none: to send one fails, and with it the
// test that wants to.
const (
	Stop     = syscall.Signal(19)
	Continue = syscall.Signal(18)
)
