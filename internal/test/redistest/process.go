package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Ports are below those that the system gives to connections, and so is the one 10,000 higher that each node
// of a cluster needs: no connection takes the port of a server that is being restarted.
const (
	firstPort = 12000
	ports     = 10000
)

// patience is how long a server may take to start.
const patience = 10 * time.Second

// newServer starts a process of which all is set but where it is.
func newServer(t testing.TB, s *Server) *Server {
	t.Helper()
	needsKernel(t)
	s.dir = t.TempDir()
	for began := time.Now(); time.Since(began) < patience; {
		s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(ports)))
		reserved := reserve(s.Addr)
		if reserved == nil {
			continue
		}
		if s.launch() { // otherwise that port was another process's
			t.Cleanup(func() {
				s.kill()
				_ = reserved.Close() // nothing is left to be said
			})
			s.refuse(t)
			return s
		}
		_ = reserved.Close()
	}
	require.FailNow(t, "no redis-server starts")
	return nil
}

// reserve keeps an address from the servers of all other tests, in this process and in others: a server that was
// killed would else be followed there by another test's, and its clients would take that for the one they know.
// It listens on UDP, which Redis does not use. It returns nil for an address that another test has.
func reserve(addr string) io.Closer {
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		return nil
	}
	return conn
}

// start starts it again, where it was.
func (s *Server) start(t testing.TB) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; {
		if s.launch() { // otherwise another process has taken its port meanwhile, and may leave it again
			return
		}
	}
	require.FailNow(t, "redis-server does not start again", s.Addr)
}

// launch starts the process, and reports whether it answers. A process that cannot have its port ends at
// once. Then another test's server may answer there: so it must say that it is this one.
func (s *Server) launch() bool {
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return false
	}
	args := slices.Concat([]string{
		"--bind", host, "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--logfile", filepath.Join(s.dir, "log"), "--repl-diskless-sync-delay", "0",
	}, debugging(), s.args)
	if s.config != "" {
		args = append([]string{s.config}, args...)
	}
	process, exited := exec.Command(binary(), args...), make(chan struct{})
	process.Env = s.env
	if process.Start() != nil {
		return false
	}
	s.process, s.exited = process, exited
	go func() {
		_ = process.Wait() // it is killed, or says why in its log
		close(exited)
	}()
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	for began := time.Now(); time.Since(began) < patience; {
		if s.answers() {
			return true
		}
		select {
		case <-exited:
			s.process = nil
			return false
		case <-retry.C:
		}
	}
	s.kill()
	return false
}

// debugging are the arguments with which the server obeys DEBUG. Redis 6 always does, and does not know them.
var debugging = sync.OnceValue(func() []string {
	version, err := exec.Command(binary(), "--version").Output()
	if err == nil && bytes.Contains(version, []byte("v=6.")) {
		return nil
	}
	return []string{"--enable-debug-command", "yes"}
})

// answers asks the server that listens there which process it is.
func (s *Server) answers() bool {
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // asked, and done
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("INFO server\r\n")); err != nil {
		return false
	}
	own := fmt.Sprintf("process_id:%d", s.process.Process.Pid)
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == own {
			return true
		}
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "process_id:") {
			return false
		}
	}
	return false
}

func (s *Server) kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill() // it may have ended already
	<-s.exited
	s.process = nil
}

// Restart kills the server and starts it again, with nothing in it.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	s.Start(t)
}

// Kill ends the server until [Server.Start].
func (s *Server) Kill() {
	if s.network != nil {
		s.network.kill()
		return
	}
	s.kill()
}

// Start starts it again.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if s.network != nil {
		s.network.start()
		return
	}
	s.start(t)
}

// Stop freezes the server, which must run, with SIGSTOP, until Continue.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.network != nil {
		require.Equal(t, time.Second, s.network.pings, "a test that stops a server begins with VirtualPinged")
		s.network.stop(true)
		return
	}
	signal(t, s.process.Process, Stop)
	if !s.stopped {
		s.stopped = true
		t.Cleanup(func() { s.Continue(t) })
	}
}

// Continue ends Stop.
func (s *Server) Continue(t testing.TB) {
	t.Helper()
	if s.network != nil {
		s.network.stop(false)
	}
	if s.process != nil {
		_ = s.process.Process.Signal(Continue) // nothing to continue when it has ended
	}
}
