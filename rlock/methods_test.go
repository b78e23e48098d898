package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
)

// What New returns is the lock of every package, and adds no method: TestMethods of package latchkey has
// them.
func TestLockOfEveryPackage(t *testing.T) {
	l, err := rlock.New(nil, "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.IsType(t, &latchkey.Lock{}, l)
	require.Nil(t, l)
}
