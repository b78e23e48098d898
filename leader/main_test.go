package leader_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
)

func TestMain(m *testing.M) { redistest.MainWithWorkers(m, worker) }

const long = locktest.Long

// worker is a process that campaigns until it is killed: address, lease in ms, and how. It says when each of
// its terms begins, when it can be trusted no longer, and when it has ended, in ns since the epoch.
func worker(args []string) {
	c := locktest.Connected(args[0])
	ms, err := strconv.Atoi(args[1])
	check(err)
	options := []leader.Option{
		leader.WithLease(time.Duration(ms) * time.Millisecond),
		leader.WithOverrun(func(o leader.Overrun) { fmt.Println("overrun", o.Term.Token(), time.Now().UnixNano()) }),
	}
	if args[2] == "exits" {
		options = append(options, leader.WithExit(7))
	}
	l, err := leader.New(c, "a", options...)
	check(err)
	check(l.Run(context.Background(), func(ctx context.Context, term leader.Term) error {
		began := time.Now()
		fmt.Println("leads", term.Token(), began.UnixNano())
		if args[2] == "exits" {
			select {}
		}
		for ctx.Err() == nil {
			last := time.Now()    // the last moment at which it was seen to be trusted
			if ctx.Err() != nil { // it was stopped between the two
				break
			}
			fmt.Println("trusts", term.Token(), last.UnixNano())
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
		fmt.Println("ended", term.Token(), time.Now().UnixNano())
		return ctx.Err()
	}))
}

// What the tests say often.
var (
	check = locktest.Check
	open  = locktest.Client
)

func newCandidate(t testing.TB, c *latchkey.Client, opts ...leader.Option) *leader.Candidate {
	t.Helper()
	l, err := leader.New(c, "a", opts...)
	require.NoError(t, err)
	return l
}

// run is a Run, whose function says that it leads and then waits for its context, or for the test.
type run struct {
	*redistest.Attempt[struct{}]

	leads chan leader.Term
	ended chan error    // the cause of each term's context
	leave chan error    // what the function is to return
	held  chan struct{} // the function returns no sooner than this is closed; nil: at once
}

func begin(t testing.TB, l *leader.Candidate, held chan struct{}) *run {
	t.Helper()
	r := &run{leads: make(chan leader.Term, 100), ended: make(chan error, 100), leave: make(chan error), held: held}
	r.Attempt = redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.Run(ctx, func(ctx context.Context, term leader.Term) error {
			r.leads <- term
			var result error
			select {
			case <-ctx.Done():
				r.ended <- context.Cause(ctx)
				result = ctx.Err()
			case result = <-r.leave:
			}
			if r.held != nil {
				<-r.held
			}
			return result
		})
	})
	return r
}

func (r *run) led(t testing.TB) leader.Term {
	t.Helper()
	select {
	case term := <-r.leads:
		return term
	case <-r.Ended:
		require.FailNow(t, "Run has ended", "%v", r.Err)
	case <-time.After(long):
		require.FailNow(t, "it does not lead")
	}
	return leader.Term{}
}

func (r *run) cause(t testing.TB) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(long):
		return errors.New("the term does not end")
	}
}

// queued waits until so many wait for the lock.
func queued(t testing.TB, plain rueidis.Client, n int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		length, err := plain.Do(t.Context(), plain.B().Llen().Key("latchkey_queue:{a}").Build()).AsInt64()
		return err == nil && length == n
	}, long, 5*time.Millisecond)
}
