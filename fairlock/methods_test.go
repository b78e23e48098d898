package fairlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
)

// What New returns is the lock of every package, and adds no method: TestMethods of package latchkey has
// them.
func TestLockOfEveryPackage(t *testing.T) {
	l, err := fairlock.New(nil, "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.IsType(t, &latchkey.Lock{}, l)
	require.Nil(t, l)
}
