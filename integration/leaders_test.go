package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
)

// ledByTheSuccessor has a leader leave while the primary is away: the candidate that waits leads as soon as
// its successor can be written to, with a greater token, and everybody is told who leads.
func ledByTheSuccessor(t *testing.T, top *topology, begin, end func(*node)) {
	top.settled(t)
	const name = "lead{z}"
	type lead struct {
		leader.Term
		at time.Time
	}
	campaigns := func() (*leader.Candidate, <-chan lead, *redistest.Attempt[struct{}]) {
		l, err := leader.New(top.open(t), name)
		require.NoError(t, err)
		terms := make(chan lead, 10)
		return l, terms, redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, l.Run(ctx, func(ctx context.Context, term leader.Term) error {
				terms <- lead{term, time.Now()}
				<-ctx.Done()
				return ctx.Err()
			})
		})
	}
	leads := func(terms <-chan lead) lead {
		t.Helper()
		select {
		case l := <-terms:
			return l
		case <-time.After(30 * time.Second):
			require.FailNow(t, "it does not lead")
			panic("not reached")
		}
	}
	_, ofA, runA := campaigns()
	first := leads(ofA)
	b, ofB, runB := campaigns()
	primary, _ := top.serving(t, "z")
	top.copied(t, primary, name, "latchkey_queue:"+name, "latchkey_leader:"+name)
	begin(primary)
	runA.Cancel() // for good: after a failover a candidate that campaigns again may be the first to listen
	_, writable := top.serving(t, "z", primary)
	next := leads(ofB)
	t.Logf("led %v after Redis was writable again", next.at.Sub(writable).Round(time.Millisecond))
	require.Less(t, next.at.Sub(writable), soon)
	require.Greater(t, next.Token(), first.Token())
	end(primary)
	top.settled(t) // a new client asks one sentinel, which may not know of the successor yet
	c, ofC, runC := campaigns()
	for _, l := range []*leader.Candidate{b, c} {
		who, err := l.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, next.Token(), who.Token)
	}
	runB.Cancel()
	require.Greater(t, leads(ofC).Token(), next.Token())
	runC.Cancel()
	for _, run := range []*redistest.Attempt[struct{}]{runA, runB, runC} {
		require.ErrorIs(t, run.Outcome(t), context.Canceled)
	}
}
