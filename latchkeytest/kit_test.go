package latchkeytest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// latchkeyLease is the lease of what is not given another.
const latchkeyLease = 10 * time.Second

// long is for waits that end sooner, on however busy a machine.
const long = 20 * time.Second

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("%v is not %v", err, target)
	}
}

// skipped counts the tests that had no redis-server.
var skipped atomic.Int64

// TestMain says how many those were.
func TestMain(m *testing.M) {
	code := m.Run()
	if n := skipped.Load(); n > 0 {
		fmt.Fprintf(os.Stderr, "latchkeytest: %d tests were skipped for the lack of a redis-server\n", n)
	}
	os.Exit(code)
}

// within awaits something that is sent, or the end of a channel.
func within[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(long):
		t.Fatalf("not %s", what)
	}
	return v
}

// eventually awaits a condition.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for began := time.Now(); !condition(); time.Sleep(time.Millisecond) {
		if time.Since(began) > long {
			t.Fatalf("not %s", what)
		}
	}
}

// tester is a test inside of a test: what it would have said of itself.
type tester struct {
	testing.TB
	mu      sync.Mutex
	errors  []string
	logs    []string
	fatal   bool
	cleanup []func()
}

// trial runs a test inside of a test to its end, and returns what it has said.
func trial(t *testing.T, test func(t testing.TB)) *tester {
	t.Helper()
	inner := &tester{TB: t}
	inner.run(test)
	return inner
}

func (t *tester) run(test func(t testing.TB)) {
	ended := make(chan struct{})
	go func() { // of its own, as it may end in the middle
		defer close(ended)
		defer func() {
			for i := len(t.cleanup) - 1; i >= 0; i-- {
				t.cleanup[i]()
			}
		}()
		test(t)
	}()
	<-ended
}

func (t *tester) Helper() {}

func (t *tester) Context() context.Context { return context.Background() }

func (t *tester) Cleanup(f func()) { t.cleanup = append(t.cleanup, f) }

func (t *tester) say(to *[]string, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*to = append(*to, text)
}

func (t *tester) Log(args ...any)                 { t.say(&t.logs, fmt.Sprint(args...)) }
func (t *tester) Logf(format string, args ...any) { t.say(&t.logs, fmt.Sprintf(format, args...)) }
func (t *tester) Error(args ...any)               { t.say(&t.errors, fmt.Sprint(args...)) }
func (t *tester) Errorf(format string, args ...any) {
	t.say(&t.errors, fmt.Sprintf(format, args...))
}

func (t *tester) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	t.fatal = true
	runtime.Goexit()
}

// redisURL starts a redis-server for a test. Without one on the PATH the test is skipped; with
// LATCHKEY_REQUIRE it fails.
func redisURL(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("LATCHKEY_REQUIRE") != "" {
			t.Fatal("LATCHKEY_REQUIRE is set, and there is no redis-server on the PATH")
		}
		skipped.Add(1)
		t.Skip("needs a redis-server on the PATH")
	}
	dir, err := os.MkdirTemp("", "latchkey") // a socket's path must be short
	ok(t, err)
	socket := filepath.Join(dir, "socket")
	server := exec.Command(program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir)
	ok(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		_ = os.RemoveAll(dir)
	})
	eventually(t, "started", func() bool { // the file is there before the server listens
		c, err := net.Dial("unix", socket)
		return err == nil && c.Close() == nil
	})
	return "unix://" + socket
}
