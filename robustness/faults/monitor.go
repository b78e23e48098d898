package faults

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// remembered is how many bytes of what a server did are kept: about the last second of one that is busy.
const remembered = 8 << 20

// monitor keeps what MONITOR said last of a server: the commands that it ran, also inside of scripts.
type monitor struct {
	mu   sync.Mutex
	text [2][]byte // the older half, and what comes now
	conn net.Conn
	over bool
}

// watchServer begins to keep what a server does, also after it was away, until the test ends.
func watchServer(t testing.TB, address string) *monitor {
	m := &monitor{}
	var reading sync.WaitGroup
	reading.Go(func() {
		for m.read(address) {
			<-time.After(20 * time.Millisecond) // it is away
		}
	})
	t.Cleanup(func() {
		m.mu.Lock()
		m.over = true
		if m.conn != nil {
			_ = m.conn.Close() // ends the reading
		}
		m.mu.Unlock()
		reading.Wait()
	})
	return m
}

// read reads until the connection ends, and reports whether there is to be another one.
func (m *monitor) read(address string) (goOn bool) {
	conn, err := net.Dial("tcp", address)
	m.mu.Lock()
	goOn = !m.over
	if err == nil {
		m.conn = conn
	}
	m.mu.Unlock()
	if err != nil {
		return goOn
	}
	defer func() { _ = conn.Close() }() // it has ended
	if !goOn {
		return false
	}
	if _, err = conn.Write([]byte("MONITOR\r\n")); err != nil {
		return true
	}
	buffer := make([]byte, 1<<16)
	for {
		n, err := conn.Read(buffer)
		m.mu.Lock()
		m.text[1] = append(m.text[1], buffer[:n]...)
		if len(m.text[1]) > remembered/2 {
			m.text[0], m.text[1] = m.text[1], m.text[0][:0]
		}
		goOn = !m.over
		m.mu.Unlock()
		if err != nil {
			return goOn
		}
	}
}

// keep writes down what is known of the n-th server.
func (m *monitor) keep(t testing.TB, dir string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	path := filepath.Join(dir, "monitor-"+strconv.Itoa(n)+".txt")
	require.NoError(t, os.WriteFile(path, append(m.text[0], m.text[1]...), 0o600))
}
