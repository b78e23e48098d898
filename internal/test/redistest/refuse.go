package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Refusals are the ways in which a server that is there answers with errors for a while, by the code of that
// error. Each begins one, and returns what ends it.
var Refusals = map[string]func(t testing.TB, s *Server) (end func()){
	"BUSY":       busy,
	"MISCONF":    misconf,
	"MASTERDOWN": masterDown,
	"LOADING":    loading,
	"NOPERM":     noPermission,
}

// Refusing is the arguments of a server that can do all of that.
func Refusing() []string {
	return []string{"--lua-time-limit", "50", "--replica-serve-stale-data", "no"}
}

func command(t testing.TB, c rueidis.Client, words ...string) {
	t.Helper()
	require.NoError(t, c.Do(context.Background(), c.B().Arbitrary(words...).Build()).Error())
}

// refused waits until a command is refused with a code.
func refused(t testing.TB, c rueidis.Client, code string, words ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := c.Do(context.Background(), c.B().Arbitrary(words...).Build()).Error()
		return err != nil && strings.Contains(err.Error(), code)
	}, 10*time.Second, 2*time.Millisecond, code)
}

func busy(t testing.TB, s *Server) func() {
	c := s.Client(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Do(context.Background(), c.B().Eval().Script("while true do end").Numkeys(0).Build()).Error() // killed by the end
	}()
	other := s.Client(t)
	refused(t, other, "BUSY", "PING")
	return func() {
		command(t, other, "SCRIPT", "KILL")
		<-ended
	}
}

func misconf(t testing.TB, s *Server) func() {
	c := s.Client(t)
	snapshot := filepath.Join(s.dir, "dump.rdb")
	_ = os.Remove(snapshot)                                               // there is none as a rule
	require.NoError(t, os.MkdirAll(filepath.Join(snapshot, "in"), 0o700)) // a directory: it cannot be replaced by a file
	command(t, c, "CONFIG", "SET", "save", "3600 1")
	require.Eventually(t, func() bool { // another one may be under way, for a replica
		_ = c.Do(context.Background(), c.B().Bgsave().Build()).Error()
		return strings.Contains(fmt.Sprint(c.Do(context.Background(), c.B().Ping().Build()).Error()), "MISCONF")
	}, 10*time.Second, 5*time.Millisecond)
	return func() {
		command(t, c, "CONFIG", "SET", "save", "")
		require.Eventually(t, func() bool { // its child would still write to the folder
			info, err := c.Do(context.Background(), c.B().Info().Section("persistence").Build()).ToString()
			return err == nil && strings.Contains(info, "rdb_bgsave_in_progress:0")
		}, 10*time.Second, 5*time.Millisecond)
		require.NoError(t, os.RemoveAll(snapshot))
	}
}

func masterDown(t testing.TB, s *Server) func() {
	c := s.Client(t)
	command(t, c, "REPLICAOF", "127.0.0.1", "1") // no server listens there
	refused(t, c, "MASTERDOWN", "EXISTS", "any") // Redis 6.2 answers PING
	return func() { command(t, c, "REPLICAOF", "NO", "ONE") }
}

func loading(t testing.TB, s *Server) func() {
	c := s.Client(t)
	for i := range 1000 {
		command(t, c, "SET", fmt.Sprintf("loading:%d", i), "x", "PX", "60000")
	}
	if c.Do(context.Background(), c.B().Arbitrary("CONFIG", "SET", "loading-process-events-interval-bytes", "1024").Build()).Error() != nil {
		// Redis 6.2 looks at its connections after every 2 MB that it has loaded.
		command(t, c, "CONFIG", "SET", "rdbcompression", "no")
		for i := range 20 {
			large := fmt.Sprintf("loading:large:%d", i)
			command(t, c, "SETRANGE", large, "2500000", "x")
			command(t, c, "PEXPIRE", large, "60000")
		}
	}
	command(t, c, "CONFIG", "SET", "key-load-delay", "2000") // microseconds a key
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Do(context.Background(), c.B().Arbitrary("DEBUG", "RELOAD").Build()).Error() // its connection may not live as long
	}()
	other := s.Client(t)
	refused(t, other, "LOADING", "PING")
	return func() { <-ended }
}

func noPermission(t testing.TB, s *Server) func() {
	c := s.Client(t)
	command(t, c, "ACL", "SETUSER", "admin", "on", "nopass", "+@all", "~*", "&*")
	option := s.Option()
	option.Username, option.Password = "admin", "any"
	admin, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(admin.Close)
	command(t, admin, "ACL", "SETUSER", "default", "-@pubsub", "-ping")
	refused(t, c, "NOPERM", "PING")
	return func() { command(t, admin, "ACL", "SETUSER", "default", "+@all") }
}
