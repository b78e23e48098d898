//go:build unix

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
)

// latchkey serve is enough to lock with, and leases end there by themselves.
func TestServe(t *testing.T) {
	t.Parallel()
	server := begin(t, "", "serve", "--listen", "127.0.0.1:0")
	require.Eventually(t, func() bool { return strings.Contains(server.out.String(), "\n") }, limit, time.Millisecond, "it says where")
	url := strings.TrimSpace(server.out.String())
	fixed, err := latchkey.Open(url)
	require.NoError(t, err)
	defer fixed.Close()
	lock, err := rlock.New(fixed, "orders:42", latchkey.WithFixedLease(100*time.Millisecond))
	require.NoError(t, err)
	hold, err := lock.Lock(t.Context())
	require.NoError(t, err)
	other, err := latchkey.Open(url)
	require.NoError(t, err)
	defer other.Close()
	same, err := rlock.New(other, "orders:42")
	require.NoError(t, err)
	next, err := same.Lock(t.Context())
	require.NoError(t, err, "the lease of the first hold has ended by itself")
	require.Greater(t, next.Token(), hold.Token())
	require.NoError(t, next.Unlock(t.Context()))
	require.NoError(t, server.Process.Signal(os.Interrupt))
	require.Zero(t, server.status(t), server.errors.String())
}

// An address that cannot be had is said so.
func TestServeNowhere(t *testing.T) {
	t.Parallel()
	server := begin(t, "", "serve", "--listen", "nowhere")
	require.Equal(t, statusUsage, server.status(t))
	require.Contains(t, server.errors.String(), "--listen")
}
