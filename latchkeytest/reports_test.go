package latchkeytest_test

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
	"github.com/latchkey-go/latchkey/rlock"
)

// The program is tested with the kit alone, in less than a second.
func TestReports(t *testing.T) {
	began := time.Now()
	testReports(t)
	t.Logf("%v", time.Since(began).Round(time.Millisecond))
}

// The same test runs on a real Redis, by one option.
func TestReportsOnRedis(t *testing.T) {
	url := redisURL(t)
	testReports(t, latchkeytest.OnRedis(url))
}

func testReports(t *testing.T, opts ...latchkeytest.Option) {
	const lease = time.Second
	setUp := func(t *testing.T, processes int) (s *latchkeytest.Server, all []*reports, clients []*latchkey.Client, p *paper) {
		t.Helper()
		s, p = latchkeytest.NewServer(t, opts...), &paper{tokens: map[string]int64{}}
		for range processes {
			c := s.Open(latchkey.WithLease(lease))
			r, err := newReports(c, p)
			ok(t, err)
			all, clients = append(all, r), append(clients, c)
		}
		return s, all, clients, p
	}
	nothing := func(int, *latchkey.Hold) {}

	t.Run("a job is done once", func(t *testing.T) {
		_, all, _, p := setUp(t, 3)
		done := make(chan error, len(all))
		for _, r := range all {
			go func() { done <- r.Load(t.Context()) }()
		}
		for range all {
			ok(t, within(t, done, "loaded"))
		}
		if len(p.written) != 1 {
			t.Fatalf("loaded %d times", len(p.written))
		}
	})
	t.Run("a hold is lost", func(t *testing.T) {
		_, all, _, p := setUp(t, 2)
		err := all[0].Write(t.Context(), 7, func(step int, hold *latchkey.Hold) {
			if step == 1 {
				latchkeytest.Lose(t, hold)
				ok(t, all[1].Write(t.Context(), 7, nothing)) // another process is faster
			}
		})
		is(t, err, latchkey.ErrLost)
		if len(p.written) != 3 {
			t.Fatalf("who lost its hold went on: %v", p.written)
		}
	})
	t.Run("the server is away", func(t *testing.T) {
		s, all, _, p := setUp(t, 2)
		writing := make(chan error, 1)
		ok(t, all[0].Write(t.Context(), 7, func(step int, _ *latchkey.Hold) {
			if step == 0 { // in the middle of one, with another one waiting
				go func() { writing <- all[1].Write(t.Context(), 8, nothing) }()
				s.Down()
			} else {
				s.Up()
			}
		}))
		ok(t, within(t, writing, "written after the outage"))
		if !p.has("7:1") || !p.has("8:1") {
			t.Fatalf("%v", p.written)
		}
	})
	t.Run("a process dies", func(t *testing.T) {
		s, all, clients, p := setUp(t, 2)
		inside, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- all[0].Write(t.Context(), 7, func(step int, hold *latchkey.Hold) {
				if step == 1 {
					close(inside)
					<-hold.Context().Done()
				}
			})
		}()
		within(t, inside, "begun")
		s.Kill(clients[0])
		is(t, within(t, ended, "ended"), latchkey.ErrClosed)
		next := make(chan error, 1)
		go func() { next <- all[1].Write(t.Context(), 7, nothing) }()
		lock, err := rlock.New(clients[1], "account:7")
		ok(t, err)
		for waits := false; !waits && len(next) == 0; { // what is just being sent as time passes may be lost
			state, err := lock.Inspect(t.Context())
			ok(t, err)
			waits = state.Waiting > 0
		}
		s.Pass(lease) // and nobody else gives it back
		ok(t, within(t, next, "granted after the lease of the dead process"))
		if len(p.written) != 3 {
			t.Fatalf("%v", p.written)
		}
	})
	t.Run("a semaphore is full", func(t *testing.T) {
		_, all, _, _ := setUp(t, 2)
		ok(t, all[0].Send(t.Context(), long, func() {
			ok(t, all[1].Send(t.Context(), long, func() {
				is(t, all[1].Send(t.Context(), 10*time.Millisecond, func() {}), errBusy)
			}))
			ok(t, all[1].Send(t.Context(), long, func() {}))
		}))
	})
}
