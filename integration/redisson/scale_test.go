//go:build unix

package redisson

import (
	"os"
	"strconv"
	"time"
)

// seconds is how long each run lasts: LATCHKEY_SECONDS, or three.
func seconds() time.Duration {
	if n, err := strconv.Atoi(os.Getenv("LATCHKEY_SECONDS")); err == nil {
		return time.Duration(n) * time.Second
	}
	return 3 * time.Second
}

// leastHolds is how many holds processes of both have while they are killed: LATCHKEY_HOLDS, or those of one
// round.
func leastHolds() int {
	if n, err := strconv.Atoi(os.Getenv("LATCHKEY_HOLDS")); err == nil {
		return n
	}
	return 1
}
