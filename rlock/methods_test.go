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
	var made func(*latchkey.Client, string, ...rlock.Option) (*latchkey.Lock, error) = rlock.New
	l, err := made(nil, "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.Nil(t, l)
}
