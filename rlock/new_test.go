package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// A lock that is made for each call costs little more than a kept one: what a name needs is there already.
func TestNewOfKnownName(t *testing.T) {
	c := open(t, redistest.New(t))
	kept, err := rlock.New(c, "known")
	require.NoError(t, err)
	allocations := testing.AllocsPerRun(100, func() {
		l, err := rlock.New(c, "known")
		if err != nil || l.Name() != kept.Name() {
			panic("it is none, or another one")
		}
	})
	require.LessOrEqual(t, allocations, 2.0) // the lock, and the client's prefix with the name
}
