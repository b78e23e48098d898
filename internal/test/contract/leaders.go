package contract

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
)

// leaders is the contract of the leaders.
type leaders struct{ Servers }

// Leaders runs the contract of the leaders.
func Leaders(t *testing.T, s Servers) {
	all := leaders{s}
	t.Run("turns", all.turns)
	t.Run("preferred", all.preferred)
	t.Run("taken away", all.takenAway)
	t.Run("connections killed", all.connectionsKilled)
	t.Run("shutdown", all.shutdown)
	s.Clean(t, true)
}

// candidacy is a Run that goes on.
type candidacy struct {
	*redistest.Attempt[struct{}]
	*leader.Candidate

	client *latchkey.Client
	terms  chan leader.Term
	causes chan error // with which a term's context has ended
}

func (s leaders) run(t testing.TB, name string, opts ...leader.Option) *candidacy {
	t.Helper()
	client := s.open(t)
	l, err := leader.New(client, "leader:"+name, opts...)
	require.NoError(t, err)
	c := &candidacy{Candidate: l, client: client, terms: make(chan leader.Term, 100), causes: make(chan error, 100)}
	c.Attempt = redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.Run(ctx, func(ctx context.Context, term leader.Term) error {
			c.terms <- term
			<-ctx.Done()
			c.causes <- context.Cause(ctx)
			return ctx.Err()
		})
	})
	return c
}

func (c *candidacy) leads(t testing.TB) leader.Term {
	t.Helper()
	select {
	case term := <-c.terms:
		return term
	case <-c.Ended:
		require.FailNow(t, "Run has ended", "%v", c.Err)
	case <-time.After(long):
		require.FailNow(t, "it does not lead")
	}
	return leader.Term{}
}

func (c *candidacy) cause(t testing.TB) error {
	t.Helper()
	select {
	case err := <-c.causes:
		return err
	case <-time.After(long):
		require.FailNow(t, "the term does not end")
		return nil
	}
}

// waits returns when so many wait for the lead.
func (s leaders) waits(t testing.TB, name string, n int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, c := range s.Plain() {
			length, err := c.Do(context.Background(), c.B().Llen().Key("latchkey_queue:{leader:"+name+"}").Build()).AsInt64()
			if err == nil && length == n {
				return true
			}
		}
		return false
	}, long, 5*time.Millisecond)
}

// In several slots: one after the other leads, with a token that grows, and every candidate knows which one
// does.
func (s leaders) turns(t *testing.T) {
	for n := range 5 {
		name := fmt.Sprint("turns", n)
		a := s.run(t, name)
		last := a.leads(t)
		b := s.run(t, name)
		s.waits(t, name, 1)
		for i := range 4 {
			now, next := a, b
			if i%2 == 1 {
				now, next = b, a
			}
			who, err := next.Leader(t.Context())
			require.NoError(t, err)
			require.Equal(t, last.Token(), who.Token)
			require.Equal(t, last.Since(), who.Since)
			require.True(t, now.Resign())
			require.ErrorIs(t, now.cause(t), leader.ErrResigned)
			term := next.leads(t)
			require.Greater(t, term.Token(), last.Token())
			last = term
			s.waits(t, name, 1)
		}
		a.Cancel()
		b.Cancel()
		require.ErrorIs(t, a.Outcome(t), context.Canceled)
		require.ErrorIs(t, b.Outcome(t), context.Canceled)
	}
}

// A preferred candidate is handed the lead, before others that wait.
func (s leaders) preferred(t *testing.T) {
	lease := leader.WithLease(3 * time.Second) // the lead is left with a renewal, and the machine may be busy
	a := s.run(t, "preferred", lease)
	a.leads(t)
	b := s.run(t, "preferred", lease)
	s.waits(t, "preferred", 1)
	better := s.run(t, "preferred", lease, leader.WithPreferred())
	better.leads(t)
	require.ErrorIs(t, a.cause(t), leader.ErrResigned)
	require.Empty(t, b.terms, "it has left its turn")
	for _, c := range []*candidacy{a, b, better} {
		c.Cancel()
		require.Error(t, c.Outcome(t))
	}
}

// The lock is deleted: the term ends with the next renewal, and the next one has a greater token. Those that
// watch see both.
func (s leaders) takenAway(t *testing.T) {
	a := s.run(t, "away", leader.WithLease(time.Second))
	watcher, err := leader.New(s.open(t), "leader:away")
	require.NoError(t, err)
	seen := make(chan leader.Leader, 100)
	w := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
		for who, err := range watcher.Watch(ctx) {
			if err != nil {
				return struct{}{}, err
			}
			seen <- who
		}
		return struct{}{}, nil
	})
	sees := func(term leader.Term) {
		t.Helper()
		for {
			select {
			case who := <-seen:
				if who.Token == term.Token() {
					return
				}
			case <-time.After(long):
				require.FailNow(t, "nobody sees it")
			}
		}
	}
	first := a.leads(t)
	sees(first)
	for _, c := range s.Plain() {
		_ = c.Do(t.Context(), c.B().Del().Key("leader:away").Build()).Error() // of a cluster, one node has it
	}
	require.ErrorIs(t, a.cause(t), latchkey.ErrLost)
	second := a.leads(t)
	require.Greater(t, second.Token(), first.Token())
	sees(second)
	w.Cancel()
	require.ErrorIs(t, w.Outcome(t), context.Canceled)
	a.Cancel()
	require.Error(t, a.Outcome(t))
}

// Whichever connections are killed, the leader leads on, and one of both leads next: the other one may have
// lost its place while it could not be told.
func (s leaders) connectionsKilled(t *testing.T) {
	a := s.run(t, "killed")
	term := a.leads(t)
	b := s.run(t, "killed")
	s.waits(t, "killed", 1)
	for _, kind := range []string{"pubsub", "normal"} {
		require.Positive(t, s.kill(t, kind))
	}
	require.True(t, a.Resign())
	require.ErrorIs(t, a.cause(t), leader.ErrResigned)
	next, other := b, a
	var now leader.Term
	select {
	case now = <-b.terms:
	case now = <-a.terms:
		next, other = a, b
	case <-time.After(long):
		require.FailNow(t, "nobody leads")
	}
	require.Greater(t, now.Token(), term.Token())
	next.Cancel()
	require.ErrorIs(t, next.Outcome(t), context.Canceled)
	other.leads(t)
	other.Cancel()
	require.ErrorIs(t, other.Outcome(t), context.Canceled)
}

func (s leaders) shutdown(t *testing.T) {
	a := s.run(t, "shutdown")
	a.leads(t)
	b := s.run(t, "shutdown")
	s.waits(t, "shutdown", 1)
	require.NoError(t, a.client.Shutdown(t.Context()))
	require.ErrorIs(t, a.cause(t), latchkey.ErrClosed)
	require.ErrorIs(t, a.Outcome(t), latchkey.ErrClosed)
	b.leads(t)
	b.Cancel()
	require.ErrorIs(t, b.Outcome(t), context.Canceled)
}
