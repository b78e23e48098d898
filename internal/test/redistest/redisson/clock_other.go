//go:build !unix

package redisson

import "time"

// Monotonic is 0: there is no clock here that Java reads too.
func Monotonic() time.Duration { return 0 }
