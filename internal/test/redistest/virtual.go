package redistest

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// trip is how long a packet takes where time is virtual.
const trip = 50 * time.Microsecond

// Virtual runs a test on an embedded server where time is virtual: it passes when all wait, and takes none. A
// machine that stalls is not seen there, so bounds of time are exact: see [Server.Within]. What needs a kernel (a
// process, a signal, a real address) cannot be tested so, nor can a test have parts.
func Virtual(t *testing.T, test func(t *testing.T, s *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, virtual(t)) })
}

// VirtualFrom is Virtual from that moment on.
func VirtualFrom(t *testing.T, moment time.Time, test func(t *testing.T, s *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(moment)) // before there is a server
		test(t, virtual(t))
	})
}

func virtual(t testing.TB) *Server {
	n := newNetwork(0, func(*rand.Rand) time.Duration { return trip })
	t.Cleanup(n.Close)
	return &Server{Addr: "an address that is virtual", network: n}
}

// Far returns an embedded server for a test of [Virtual], to which and from which a packet takes a random time
// between these.
func Far(t testing.TB, least, most time.Duration) *Server {
	n := newNetwork(rand.Uint64(), func(random *rand.Rand) time.Duration {
		return least + time.Duration(random.Int64N(int64(most-least)))
	})
	t.Cleanup(n.Close)
	return &Server{Addr: "an address that is far", network: n}
}

// Beside returns an embedded server for the same test.
func (s *Server) Beside(t testing.TB) *Server {
	t.Helper()
	if s.network == nil {
		return NewEmbedded(t)
	}
	beside := virtual(t)
	beside.network.pings = s.network.pings
	return beside
}

// VirtualPinged is Virtual for a test that stops the server. Its clients ask each second on a link that is idle, as
// rueidis does where time is real: so they notice it.
func VirtualPinged(t *testing.T, test func(t *testing.T, s *Server)) {
	t.Helper()
	Virtual(t, func(t *testing.T, s *Server) {
		s.network.pings = time.Second
		test(t, s)
	})
}

// Within checks that no more than that has passed. Where time is real the machine may have stood still, and
// only the order of events is checked, by the test.
func (s *Server) Within(t testing.TB, began time.Time, most time.Duration, why ...any) {
	t.Helper()
	if s != nil && s.network != nil {
		require.LessOrEqual(t, time.Since(began), most, why...)
	}
}

// Run runs a part of a test that [Each] runs: t.Run, but where time is virtual the test itself has the part.
func (s *Server) Run(t *testing.T, name string, part func(t *testing.T)) {
	t.Helper()
	if s == nil || s.network == nil {
		t.Run(name, part)
		return
	}
	t.Log("part:", name)
	part(t)
}
