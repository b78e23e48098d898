package whole_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

// wantedKinds are the locks whose holders are asked to let go.
var wantedKinds = map[string]func(c *latchkey.Client) (*latchkey.Lock, error){
	"rlock":    func(c *latchkey.Client) (*latchkey.Lock, error) { return rlock.New(c, "a") },
	"fairlock": func(c *latchkey.Client) (*latchkey.Lock, error) { return fairlock.New(c, "a") },
	"spinlock": func(c *latchkey.Client) (*latchkey.Lock, error) { return spinlock.New(c, "a") },
	"write": func(c *latchkey.Client) (*latchkey.Lock, error) {
		l, err := rwlock.New(c, "a")
		return l.Write(), err
	},
}

func newWanted(t testing.TB, c *latchkey.Client, kind string) *latchkey.Lock {
	t.Helper()
	l, err := wantedKinds[kind](c)
	require.NoError(t, err)
	return l
}

// wantedWorker holds a lock until somebody wants it, again and again. It prints how long that took, in µs.
func wantedWorker(url, kind string) {
	c, err := latchkey.Open(url)
	if err != nil {
		panic(err)
	}
	l, err := wantedKinds[kind](c)
	for err == nil {
		var h *latchkey.Hold
		if h, err = l.Lock(context.Background()); err != nil {
			break
		}
		began := time.Now()
		<-h.Wanted()
		fmt.Println(time.Since(began).Microseconds())
		err = h.Unlock(context.Background())
	}
	panic(err)
}

// Two processes take turns, and each holds until the other one wants the lock: no call is missed for longer
// than the question takes. In the soak there are 10,000 turns of each kind.
// Rule 48.
func TestWantedOverProcesses(t *testing.T) {
	rounds := 300
	if os.Getenv("LATCHKEY_SOAK") != "" {
		rounds = 10_000
	}
	for kind := range wantedKinds {
		rounds := rounds
		if kind == "spinlock" { // whose turns last as long as the pauses of the one who waits
			rounds /= 10
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := redistest.NewProcess(t)
			var lines []<-chan string
			for range 2 {
				w := redistest.StartWorker(t, "wanted "+s.URL()+" "+kind)
				lines = append(lines, w.Lines())
			}
			var took []time.Duration
			for len(took) < rounds {
				var line string
				select {
				case line = <-lines[0]:
				case line = <-lines[1]:
				case <-time.After(long):
					require.FailNow(t, "nobody lets go", "after %d turns", len(took))
				}
				us, err := strconv.Atoi(line)
				require.NoError(t, err)
				took = append(took, time.Duration(us)*time.Microsecond)
			}
			slices.Sort(took)
			t.Logf("%d turns: p50 %v, p99 %v, longest %v", rounds, took[rounds/2], took[rounds*99/100], took[rounds-1])
			require.Less(t, took[rounds*9/10], time.Second, "by message, and not by the question")
		})
	}
}

func requireWanted(t testing.TB, wanted <-chan struct{}) {
	t.Helper()
	select {
	case <-wanted:
	case <-time.After(long):
		require.FailNow(t, "it is not said that somebody waits")
	}
}

func requireUnwanted(t testing.TB, wanted <-chan struct{}) {
	t.Helper()
	select {
	case <-wanted:
		require.FailNow(t, "nobody wants it")
	case <-time.After(10 * time.Millisecond):
	}
}

// A waiter whose message does not come is found by the question.
// Rule 48.
func TestWantedWithoutMessages(t *testing.T) {
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	acl := func(words string) {
		t.Helper()
		require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(strings.Fields("ACL SETUSER some "+words)...).Build()).Error())
	}
	acl("on >secret ~* &* +@all")
	option := s.Option()
	option.Username, option.Password = "some", "secret"
	for kind := range wantedKinds {
		if kind == "spinlock" {
			continue // its waiters leave no trace
		}
		t.Run(kind, func(t *testing.T) {
			holder, err := rueidisclient.New(s.Option())
			require.NoError(t, err)
			defer holder.Close()
			waiter, err := rueidisclient.New(option)
			require.NoError(t, err)
			defer waiter.Close()
			acl("resetchannels &latchkey_inbox:" + waiter.ID())
			defer acl("&*")
			l := newWanted(t, holder, kind)
			h, err := l.Lock(t.Context())
			require.NoError(t, err)
			wanted := h.Wanted()
			requireUnwanted(t, wanted)
			next := redistest.Begin(t, newWanted(t, waiter, kind).Lock)
			locktest.Eventually(t, "it is queued", func() bool {
				state, err := l.Inspect(t.Context())
				return err == nil && state.Waiting == 1
			})
			requireWanted(t, wanted)
			require.NoError(t, h.Unlock(t.Context()))
			require.NoError(t, next.Granted(t).Unlock(t.Context()))
		})
	}
}

// A hold that is over is wanted by nobody, and none is wanted by its own goroutine, which re-enters.
func TestWantedOfWhatIsOver(t *testing.T) {
	require.Nil(t, (*latchkey.Hold)(nil).Wanted())
	require.Nil(t, (&latchkey.Hold{}).Wanted())
	require.Nil(t, (*multilock.Hold)(nil).Wanted())
	s := redistest.New(t)
	c, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	defer c.Close()
	l := newWanted(t, c, "rlock")
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	wanted := h.Wanted()
	again, err := l.Lock(h.Context())
	require.NoError(t, err)
	requireUnwanted(t, wanted)
	requireUnwanted(t, again.Wanted())
	next := redistest.Begin(t, l.Lock)
	requireWanted(t, wanted)
	requireWanted(t, again.Wanted())
	require.NoError(t, again.Unlock(t.Context()))
	require.NoError(t, h.Unlock(t.Context()))
	requireWanted(t, h.Wanted())
	got := next.Granted(t)
	wanted = got.Wanted()
	require.NoError(t, got.Unlock(t.Context()))
	h, err = l.Lock(t.Context())
	require.NoError(t, err)
	next = redistest.Begin(t, l.Lock)
	requireWanted(t, h.Wanted())
	requireUnwanted(t, wanted)
	require.NoError(t, h.Unlock(t.Context()))
	require.NoError(t, next.Granted(t).Unlock(t.Context()))
}

// Those who read hear of a writer, of their process or another one, and not of more who read.
// Rule 48.
func TestWantedByAWriter(t *testing.T) {
	s := redistest.New(t)
	var halves []*rwlock.Lock
	for range 2 {
		c, err := rueidisclient.New(s.Option())
		require.NoError(t, err)
		defer c.Close()
		l, err := rwlock.New(c, "a")
		require.NoError(t, err)
		halves = append(halves, l)
	}
	for _, writer := range halves {
		one, err := halves[0].Read().Lock(t.Context())
		require.NoError(t, err)
		wanted := one.Wanted()
		var others []*latchkey.Hold
		for _, l := range halves {
			other, err := l.Read().Lock(t.Context())
			require.NoError(t, err)
			requireUnwanted(t, other.Wanted())
			others = append(others, other)
		}
		requireUnwanted(t, wanted)
		ctx, cancel := context.WithCancel(t.Context())
		next := redistest.Begin(t, func(context.Context) (*latchkey.Hold, error) { return writer.Write().Lock(ctx) })
		requireWanted(t, wanted)
		cancel()
		require.ErrorIs(t, next.Outcome(t), context.Canceled)
		locktest.Eventually(t, "it is not queued any more", func() bool {
			state, err := writer.Write().Inspect(t.Context())
			return err == nil && state.Waiting == 0
		})
		for _, h := range append(others, one) {
			require.NoError(t, h.Unlock(t.Context()))
		}
	}
}

// Several locks that are held together are wanted as soon as one of them is, and one over several servers by
// those who try there.
// Rule 48.
func TestWantedOfSeveral(t *testing.T) {
	var sides [2][]*latchkey.Client
	for range 3 {
		s := redistest.New(t)
		for i := range sides {
			c, err := rueidisclient.New(s.Option())
			require.NoError(t, err)
			defer c.Close()
			sides[i] = append(sides[i], c)
		}
	}
	mine, other := sides[0], sides[1]

	b, err := fairlock.New(mine[1], "b")
	require.NoError(t, err)
	its, err := fairlock.New(other[1], "b")
	require.NoError(t, err)
	l, err := multilock.New(newWanted(t, mine[0], "rlock"), b)
	require.NoError(t, err)
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	requireUnwanted(t, h.Wanted())
	next := redistest.Begin(t, its.Lock)
	requireWanted(t, h.Wanted())
	require.NoError(t, h.Unlock(t.Context()))
	require.NoError(t, next.Granted(t).Unlock(t.Context()))

	for _, by := range [][]*latchkey.Client{other, mine} {
		red, err := redlock.New(mine, "red")
		require.NoError(t, err)
		hold, err := red.Lock(t.Context())
		require.NoError(t, err)
		requireUnwanted(t, hold.Wanted())
		its, err := redlock.New(by, "red")
		require.NoError(t, err)
		next := redistest.Begin(t, its.Lock)
		requireWanted(t, hold.Wanted())
		require.NoError(t, hold.Unlock(t.Context()))
		require.NoError(t, next.Granted(t).Unlock(t.Context()))
	}
}
