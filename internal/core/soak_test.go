package core_test

import (
	"os"
	"testing"
)

// longer returns the long form of a number with LATCHKEY_SOAK set, else the short one.
func longer(t testing.TB, short, long int64) int64 {
	t.Helper()
	if os.Getenv("LATCHKEY_SOAK") != "" {
		return long
	}
	return short
}
