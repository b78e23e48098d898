package property_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
)

// ended is the end of a run that counts: all get what it got, and it is forgotten.
func (m *shares) ended(e ending) {
	m.t.Helper()
	s := m.running
	m.tell("   %d: ends with %.20q, %v", s.client, e.value, e.err)
	<-time.After(m.trip) // what began to wait less than a trip before the end may have it run again
	s.ends <- e
	text := ""
	switch got := s.Outcome(m.t); {
	case e.err != nil:
		require.ErrorIs(m.t, got, e.err, m.told())
		text = e.err.Error()
	case len(e.value) > once.MaxResult:
		require.ErrorIs(m.t, got, latchkey.ErrInvalid, m.told())
		text = got.Error()
	default:
		require.NoError(m.t, got, m.told())
		require.Equal(m.t, e.value, s.Hold, m.told())
	}
	require.NotErrorIs(m.t, s.Err, latchkey.ErrNotRun)
	for _, w := range m.waiting {
		got := w.Outcome(m.t)
		if text == "" {
			require.NoError(m.t, got, m.told())
			require.True(m.t, bytes.Equal(e.value, w.Hold), m.told())
			continue
		}
		var failure *once.Failure
		require.ErrorAs(m.t, got, &failure, m.told())
		require.Equal(m.t, text, failure.Text, m.told())
	}
	m.running, m.waiting, m.attempts = nil, nil, 0
	m.settle()
}

// ending returns one that counts.
func (m *shares) ending() ending {
	switch m.random.IntN(8) {
	case 0:
		return ending{err: fmt.Errorf("%w at %d", errWork, len(m.story))}
	case 1:
		return ending{value: make([]byte, once.MaxResult+1)}
	case 2:
		return ending{value: []byte{}}
	default:
		return ending{value: fmt.Appendf(nil, "\x00result %d\xff", len(m.story))}
	}
}

// fails ends a run that does not count: the next one runs.
func (m *shares) fails(e ending, want ...error) {
	m.t.Helper()
	s := m.running
	s.ends <- e
	for _, one := range want {
		require.ErrorIs(m.t, s.Outcome(m.t), one, m.told())
	}
	require.NotErrorIs(m.t, s.Err, latchkey.ErrNotRun, m.told())
	m.running = nil
	m.settle()
}

// cancel ends the context of the call that runs. What ran to its end counts all the same.
func (m *shares) cancel() {
	m.tell("%d: who runs is cancelled", m.running.client)
	m.running.Cancel()
	<-m.running.held.Done()
	if m.random.IntN(3) == 0 {
		m.ended(ending{value: []byte("in time")})
		return
	}
	m.fails(ending{err: errWork}, errWork)
}

// force takes the lock away from who runs, which is stale once another one runs.
func (m *shares) force() {
	s := m.running
	m.tell("%d: its lock is taken away", s.client)
	held, err := m.locks[m.random.IntN(len(m.locks))].ForceUnlock(m.t.Context())
	require.NoError(m.t, err)
	require.True(m.t, held, m.told())
	<-s.held.Done()
	if m.random.IntN(3) == 0 {
		m.fails(ending{err: errWork}, errWork, latchkey.ErrLost)
		return
	}
	if len(m.waiting) == 0 && m.random.IntN(2) == 0 {
		m.ended(ending{value: []byte("nobody else has begun")})
		return
	}
	m.running = nil
	if len(m.waiting) == 0 {
		m.call()
	} else {
		m.settle()
	}
	s.ends <- ending{value: []byte("stale")}
	require.ErrorIs(m.t, s.Outcome(m.t), once.ErrSuperseded, m.told())
	require.Equal(m.t, "stale", string(s.Hold), m.told())
	m.settle()
}

// dies closes the client of who runs, whose function does not return: as of a process that is killed. After
// the lease another one runs.
func (m *shares) dies() {
	s := m.running
	m.tell("%d: the client dies", s.client)
	m.clients[s.client].Close()
	gone := func(w *sharer) bool { return w.client == s.client }
	for _, w := range m.waiting {
		if gone(w) {
			require.ErrorIs(m.t, w.Outcome(m.t), latchkey.ErrClosed, m.told())
		}
	}
	m.waiting = slices.DeleteFunc(m.waiting, gone)
	<-s.held.Done()
	c := m.open()
	l, err := rlock.New(c, m.name)
	require.NoError(m.t, err)
	m.clients[s.client], m.locks[s.client] = c, l
	m.running = nil
	m.settle()
	s.ends <- ending{err: errWork} // it was only stopped
	require.ErrorIs(m.t, s.Outcome(m.t), errWork, m.told())
	m.settle()
}

// leave cancels one who waits.
func (m *shares) leave() {
	i := m.random.IntN(len(m.waiting))
	w := m.waiting[i]
	m.tell("%d: gives up", w.client)
	w.Cancel()
	require.ErrorIs(m.t, w.Outcome(m.t), context.Canceled, m.told())
	require.ErrorIs(m.t, w.Err, latchkey.ErrNotRun, m.told())
	m.waiting = slices.Delete(m.waiting, i, i+1)
	m.settle()
}

func (m *shares) step() {
	switch n := m.random.IntN(20); {
	case n < 10 && len(m.waiting) < 6:
		m.call()
	case m.running == nil && n == 19:
		m.tell("it is forgotten")
		require.NoError(m.t, m.plain.Do(m.t.Context(), m.plain.B().Del().Key(recordOf("latchkey_share", m.name)).Build()).Error())
		m.attempts = 0
	case m.running == nil:
	case n < 13:
		m.ended(m.ending())
	case n < 15:
		m.cancel()
	case n == 15:
		m.tell("%d: panics", m.running.client)
		m.fails(ending{panics: true}, errPanic)
	case n == 16:
		m.force()
	case n == 17 && m.mortal:
		m.dies()
	case len(m.waiting) > 0:
		m.leave()
	}
}
