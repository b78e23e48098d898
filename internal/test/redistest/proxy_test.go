package redistest_test

import (
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// What was withheld has run when Deliver returns, whether its client is still there or not.
func TestWithheld(t *testing.T) {
	for name, closes := range map[string]bool{"the client is there": false, "the client is gone": true} {
		t.Run(name, func(t *testing.T) {
			s := redistest.New(t)
			p := redistest.NewProxy(t, s)
			var seen atomic.Bool
			p.Judge(func(request string) redistest.Verdict {
				if strings.Contains(request, "INCR") {
					seen.Store(true)
					return redistest.Withhold
				}
				return redistest.Pass
			})
			c, err := net.Dial("tcp", p.Addr)
			require.NoError(t, err)
			defer func() { _ = c.Close() }() // perhaps again
			_, err = io.WriteString(c, "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n")
			require.NoError(t, err)
			require.Eventually(t, seen.Load, 20*time.Second, time.Millisecond)
			if closes {
				require.NoError(t, c.Close())
			}
			delivered := make(chan struct{})
			go func() {
				p.Deliver()
				close(delivered)
			}()
			select {
			case <-delivered:
			case <-time.After(20 * time.Second):
				require.FailNow(t, "it waits for ever")
			}
			plain := s.Client(t)
			n, err := plain.Do(t.Context(), plain.B().Get().Key("n").Build()).ToString()
			require.NoError(t, err)
			require.Equal(t, "1", n)
		})
	}
}
