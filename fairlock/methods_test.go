package fairlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
)

// What New returns is the lock of every package, and adds no method: TestMethods of package latchkey has them.
func TestLockOfEveryPackage(t *testing.T) {
	var made func(*latchkey.Client, string, ...fairlock.Option) (*latchkey.Lock, error) = fairlock.New
	l, err := made(nil, "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.Nil(t, l)
}
