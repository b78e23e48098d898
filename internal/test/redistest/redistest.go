// Package redistest gives tests a Redis: the one that LATCHKEY_TEST_REDIS names (it is flushed), else a
// process of the redis-server on the PATH, else the embedded server. What only a process of our own can show
// (SIGSTOP, a restart, a replica) is skipped without one. So is what sets its clock without a C compiler, and
// what counts its instructions without valgrind. [Main] says how often. LATCHKEY_REQUIRE, whatever
// it has, makes each such skip a failure.
package redistest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Seed is what LATCHKEY_SEED says, or a fresh one. Whoever draws from it logs it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv("LATCHKEY_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "LATCHKEY_SEED")
	return n
}

// Longer returns the long form of a number with LATCHKEY_SOAK set, else the short one.
func Longer(short, long int64) int64 {
	if os.Getenv("LATCHKEY_SOAK") != "" {
		return long
	}
	return short
}

// Brief reports that a search takes a second and not a minute: there is no server but the embedded one, so this
// is somebody's first run of the tests, or LATCHKEY_BRIEF asks for it. Longer searches belong to the other runs.
func Brief() bool {
	if os.Getenv("LATCHKEY_BRIEF") != "" {
		return true
	}
	return os.Getenv("LATCHKEY_TEST_REDIS") == "" && binary() == "" && Longer(0, 1) == 0
}

// Rounds is [Longer] of how often a test tries what goes wrong by chance: a quarter of that where [Brief] says so,
// and with the race detector, which needs to see each access only once.
func Rounds(short, long int64) int64 {
	if Brief() || Raced() && Longer(0, 1) == 0 {
		return max(short/4, 1)
	}
	return Longer(short, long)
}

// Lengthy skips a test that takes minutes where [Brief] says so, as one that needs a redis-server.
func Lengthy(t testing.TB) {
	t.Helper()
	if Brief() {
		lacking(t, false, "a longer run, with a redis-server")
	}
}

// needsKernel panics in a synctest bubble: time stands still there for as long as a goroutine awaits the kernel.
func needsKernel(t testing.TB) {
	if t, is := t.(*testing.T); is {
		t.Deadline() // which has no meaning in a bubble, and says so
	}
}

// Together lets a test wait while others of its package do: the first thing that a test says which has servers
// of its own. With LATCHKEY_TEST_REDIS the tests run one after the other, because each flushes that server.
func Together(t *testing.T) {
	t.Helper()
	if os.Getenv("LATCHKEY_TEST_REDIS") == "" {
		t.Parallel()
	}
}

func binary() string {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return ""
	}
	return path
}

// Server is one Redis.
type Server struct {
	Addr string

	args    []string
	env     []string      // nil: that of the test
	offset  string        // file that says by how many microseconds its clock is wrong; empty: it cannot be set
	ahead   time.Duration // what that says
	config  string        // file; empty: none
	dir     string
	process *exec.Cmd     // nil: it does not run
	exited  chan struct{} // closed when the process has ended
	stopped bool
	strict  *Strict        // stands before it; nil: none does
	plain   rueidis.Client // of the test; nil: it has asked nothing
	network *Network       // to an embedded server where time is virtual; nil: it is real
}

// New returns a server: any that is to be had.
func New(t testing.TB) *Server {
	t.Helper()
	if url := os.Getenv("LATCHKEY_TEST_REDIS"); url != "" {
		option, err := rueidis.ParseURL(url)
		require.NoError(t, err)
		s := &Server{Addr: option.InitAddress[0]}
		client := s.Client(t)
		require.NoError(t, client.Do(t.Context(), client.B().Flushall().Build()).Error())
		return s
	}
	if binary() != "" {
		return NewProcess(t)
	}
	return NewEmbedded(t)
}

// NewEmbedded returns the embedded server, whose keys expire by the clock.
func NewEmbedded(t testing.TB) *Server {
	t.Helper()
	needsKernel(t)
	m, err := startEmbedded()
	require.NoError(t, err)
	t.Cleanup(m.Close)
	return &Server{Addr: m.Addr()}
}

func startEmbedded() (*miniredis.Miniredis, error) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	return m, m.Start()
}

// Each runs a test on a real server, and on the embedded one where time is virtual.
func Each(t *testing.T, test func(t *testing.T, s *Server)) {
	onReal(t, test)
	t.Run("embedded", func(t *testing.T) { Virtual(t, test) })
}

// EachServed is Each for a test that runs processes: the embedded server has an address as well, so time is real.
func EachServed(t *testing.T, test func(t *testing.T, s *Server)) {
	onReal(t, test)
	t.Run("embedded", func(t *testing.T) { test(t, NewEmbedded(t)) })
}

func onReal(t *testing.T, test func(t *testing.T, s *Server)) {
	t.Run("redis", func(t *testing.T) {
		if os.Getenv("LATCHKEY_TEST_REDIS") != "" {
			test(t, New(t))
			return
		}
		test(t, NewProcess(t))
	})
}

// NewProcess returns a redis-server of the test's own, with more arguments if wanted.
func NewProcess(t testing.TB, args ...string) *Server {
	t.Helper()
	return NewConfigured(t, "", args...)
}

// NewConfigured is NewProcess with a configuration file, which the server may rewrite, unless that is empty.
func NewConfigured(t testing.TB, config string, args ...string) *Server {
	t.Helper()
	Require(t)
	s := &Server{args: args}
	if config != "" {
		s.config = filepath.Join(t.TempDir(), "server.conf")
		require.NoError(t, os.WriteFile(s.config, []byte(config), 0o600))
	}
	return newServer(t, s)
}

// Required reports whether LATCHKEY_REQUIRE, which is a list with commas between, has that.
func Required(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("LATCHKEY_REQUIRE"), ","), what)
}

// Require skips the test, or fails it with LATCHKEY_REQUIRE, when there is no redis-server on the PATH.
func Require(t testing.TB) {
	t.Helper()
	if binary() == "" {
		lacks(t, "a redis-server")
	}
}

// RequireValgrind is [Require] for what needs valgrind as well.
func RequireValgrind(t testing.TB) {
	t.Helper()
	Require(t)
	if _, err := exec.LookPath("valgrind"); err != nil {
		lacks(t, "valgrind")
	}
}

// Lacks skips a test for want of something that not every user has, or fails it where LATCHKEY_REQUIRE lists
// what.
func Lacks(t testing.TB, what, needs string) {
	t.Helper()
	lacking(t, Required(what), needs)
}

// lacks is Lacks of a tool that most users have: LATCHKEY_REQUIRE wants it, whatever it lists.
func lacks(t testing.TB, tool string) {
	t.Helper()
	lacking(t, os.Getenv("LATCHKEY_REQUIRE") != "", tool+" on the PATH")
}

func lacking(t testing.TB, required bool, needs string) {
	t.Helper()
	if required {
		t.Fatalf("LATCHKEY_REQUIRE is %q, and this needs %s", os.Getenv("LATCHKEY_REQUIRE"), needs)
	}
	skipped.Add(1)
	t.Skip("needs " + needs)
}

// Skipped is how many tests were skipped so far.
func Skipped() int64 { return skipped.Load() }

// URL is the server's address as Open wants it.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Option is the server's address as rueidis wants it, or that of a [Strict] that stands before the server.
func (s *Server) Option() rueidis.ClientOption {
	if s.strict != nil {
		return s.strict.Option()
	}
	return s.direct()
}

// direct is the option of a client of the server itself.
func (s *Server) direct() rueidis.ClientOption {
	if s.network != nil {
		return s.network.Option(0)
	}
	return optionOf(s.Addr)
}

func (s *Server) dial() (net.Conn, error) {
	if s.network != nil {
		return s.network.Dial(0)
	}
	return net.Dial("tcp", s.Addr)
}

func optionOf(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true, PipelineMultiplex: -1,
		ReadBufferEachConn: 1 << 12, WriteBufferEachConn: 1 << 12, RingScaleEachConn: 6, // tests open thousands of clients
	}
}

// Client returns a plain client, closed with the test.
func (s *Server) Client(t testing.TB) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(s.direct())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// Port is the server's TCP port.
func (s *Server) Port(t testing.TB) int {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return n
}

// IsRecord reports whether a key is what a client tells of itself, which outlives a client that was killed by
// 30 seconds, or who took a lock away.
func IsRecord(key string) bool {
	return strings.HasPrefix(key, "latchkey_client:") || strings.HasPrefix(key, "latchkey_forced:")
}
