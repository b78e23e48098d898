//go:build unix

package redisson

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/internal/test/redistest/redisson"
)

// versions are those of Redisson that the tests run on: those of LATCHKEY_REDISSON, with commas between. All
// runs nightly.
func versions() []string {
	if list := os.Getenv("LATCHKEY_REDISSON"); list != "" && list != "none" {
		return strings.Split(list, ",")
	}
	return []string{"3.24.3", redisson.Newest}
}

// newest is the version of tests for which one is enough.
func newest() string { all := versions(); return all[len(all)-1] }

// each runs a test on each version.
func each(t *testing.T, test func(t *testing.T, version string)) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) { test(t, version) })
	}
}

var (
	building sync.Mutex
	built    = map[string]*redisson.Program{}
	folder   string // of the programs; empty: there are none
)

// program builds the Java program with a version of Redisson, once.
func program(t testing.TB, version string) *redisson.Program {
	t.Helper()
	if os.Getenv("LATCHKEY_REDISSON") == "none" {
		redistest.Lacks(t, "redisson", "Redisson: LATCHKEY_REDISSON is none")
	}
	if tool := redisson.Lacks(); tool != "" {
		redistest.Lacks(t, "redisson", tool+" on the PATH")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		redistest.Lacks(t, "redisson", "redis-server on the PATH")
	}
	building.Lock()
	defer building.Unlock()
	if built[version] == nil {
		dir, err := os.MkdirTemp(folder, version)
		require.NoError(t, err)
		built[version], err = redisson.Build(version, dir)
		require.NoError(t, err)
	}
	return built[version]
}

// driver is the Java program in a process of its own. Its methods are for one goroutine, but for kill.
type driver struct{ process *redisson.Process }

// java starts the program against servers.
func java(t testing.TB, version string, args ...string) *driver {
	t.Helper()
	process, err := program(t, version).Start(args...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if said := process.Close(); t.Failed() {
			t.Logf("Redisson said:\n%.4000s", said)
		}
	})
	return &driver{process}
}

// tell sends a command.
func (d *driver) tell(t testing.TB, format string, args ...any) {
	t.Helper()
	require.NoError(t, d.process.Tell(format, args...))
}

// await returns the words of the next event that begins with these.
func (d *driver) await(t testing.TB, words ...string) []string {
	t.Helper()
	event, err := d.process.Await(words...)
	require.NoError(t, err)
	return event
}

// at is the time of an event, as monotonic reads it.
func at(t testing.TB, word string) time.Duration {
	t.Helper()
	n, err := strconv.ParseInt(word, 10, 64)
	require.NoError(t, err)
	return time.Duration(n)
}

// kill is kill -9.
func (d *driver) kill() { d.process.Kill() }
