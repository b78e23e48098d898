package core_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// stranger is a server that answers whatever it is sent with the same text, and closes the connection after
// that if asked to.
func stranger(t *testing.T, answer string, closes bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var running sync.WaitGroup
	var mu sync.Mutex
	var all []net.Conn
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			all = append(all, c)
			mu.Unlock()
			running.Go(func() {
				buffer := make([]byte, 1<<16)
				for {
					if _, err := c.Read(buffer); err != nil {
						return
					}
					if answer != "" {
						_, _ = c.Write([]byte(answer)) // it may be closed: the next Read says so
					}
					if closes {
						_ = c.Close()
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // ends the loop
		mu.Lock()
		for _, c := range all {
			_ = c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return listener.Addr().String()
}

// What is no Redis, or one that does not answer, is an error of Open, and soon.
func TestOpenOnAStranger(t *testing.T) {
	stopped := redistest.NewProcess(t)
	stopped.Stop(t)
	full := redistest.NewProcess(t, "--maxclients", "1")
	_ = full.Client(t) // the one
	for name, addr := range map[string]string{
		"silent":       stranger(t, "", false),
		"stopped":      stopped.Addr,
		"full":         full.Addr,
		"HTTP":         stranger(t, "HTTP/1.1 400 Bad Request\r\n\r\n", true),
		"garbage":      stranger(t, "\x00\x01garbage\r\n", false),
		"hangs up":     stranger(t, "", true),
		"always an OK": stranger(t, "+OK\r\n", false),
		"half a reply": stranger(t, "*3\r\n$5\r\nab", false),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			c, err := core.Open(rueidis.ClientOption{InitAddress: []string{addr}}, session.DefaultOptions())
			if err == nil {
				closeNow(c)
			}
			require.ErrorIs(t, err, fail.ErrUnavailable)
			require.Less(t, time.Since(began), 5*time.Second)
		})
	}
}
