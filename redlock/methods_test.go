package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/redlock"
)

// What New returns is the lock of every package, and adds no method: TestMethods of package latchkey has
// them.
func TestLockOfEveryPackage(t *testing.T) {
	l, err := redlock.New(nil, "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.IsType(t, &latchkey.Lock{}, l)
	require.Nil(t, l)
}
