//go:build unix

package redisson

import (
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// far returns an address from which each message takes so long to a server, and as long back.
func far(t *testing.T, addr string, ms string) string {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "redis", "127.0.0.1:0", addr)
	require.NoError(t, p.Start())
	t.Cleanup(p.Stop)
	for _, stream := range []string{"upstream", "downstream"} {
		_, err := p.Toxics.AddToxicJson(strings.NewReader(
			`{"name": "` + stream + `", "type": "latency", "stream": "` + stream + `", "toxicity": 1, "attributes": {"latency": ` + ms + `}}`))
		require.NoError(t, err)
	}
	return p.Listen
}

// A process of ours that is ten milliseconds from Redis has its turns beside processes of Redisson that are
// near it, and are faster at a lock that is free.
func TestMeasuredFarFromRedis(t *testing.T) {
	s := redistest.NewProcess(t)
	d := java(t, newest(), "--redis", s.URL())
	p := plan{kind: "lock", name: "a", threads: 4, work: time.Millisecond, lasts: seconds()}
	d.warm(t, p)
	beside(t, d, p, p, far(t, s.Addr, "5")).judge(t, newest(), 1, 0.05)
}
