package property_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// long is how long the test waits for what must happen before it gives up.
const long = 10 * time.Second

// prompt is less than any client waits before it asks again by itself.
const prompt = 1500 * time.Millisecond

// lease is that of all that is held. No scenario comes near it without a renewal.
const lease = 10 * time.Second

// tally counts the operations and what they returned.
type tally map[string]int

func (c tally) String() string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(c)) {
		lines = append(lines, fmt.Sprintf("%6d  %s", c[key], key))
	}
	return "what was done:\n" + strings.Join(lines, "\n")
}

// scene is one random scenario.
type scene struct {
	t       *testing.T
	server  *redistest.Server
	plain   rueidis.Client
	random  *rand.Rand
	about   string
	done    tally
	stalls  bool          // the clients' connections are late now and then
	lag     time.Duration // by how much those are late who are to wait
	clients [2]*latchkey.Client
	ids     [2]string // of the clients, as owner ids begin
	places  []*place
	links   [2]*link         // of the clients
	log     locktest.Journal // of the clients: one that is cut off for a moment loses its places in queues
}

// place is one name, with what the model knows of it.
type place struct {
	*scene
	name     string
	families []family
	last     family // that the name was used as, of those who queue
	locks    *locks // one of them
	favour   int    // the family that is used most, for now
	story    []string
	calls    []*call // that have not been seen to return
}

// family is the model of one kind of primitive under a name.
type family interface {
	kind() string
	there() bool // the name is one of this kind
	text() bool  // in Redis it is a number, as others are
	queued() int // how many wait
	step()       // does something that the model foresees
	stray()      // does something while the name is of another kind
	check()      // compares what Redis says with the model
	end()        // ends all that waits or is held, and deletes what can be
}

// open makes the clients, and the names.
func (s *scene) open() {
	for n := range s.clients {
		s.links[n] = &link{}
		if s.stalls {
			s.links[n].stalls = rand.New(rand.NewPCG(s.random.Uint64(), 0))
		}
		options := []latchkey.Option{latchkey.WithLease(lease), latchkey.WithCommandTimeout(long),
			s.log.Logger(), latchkey.WithObserver(latchkey.Observer{
				Queued:     wasQueued,
				Subscribed: func() { _, _ = fmt.Fprintf(&s.log, "client %d has subscribed\n", n) },
			})}
		if n == 1 {
			options = append(options, latchkey.WithDeclaredKeys()) // beside one that does not
		}
		c, err := rueidisclient.New(s.links[n].through(s.server.Option()), options...)
		require.NoError(s.t, err)
		s.t.Cleanup(func() { _ = c.Close() })
		s.clients[n] = c
		require.NoError(s.t, c.Check(s.t.Context()))
		s.ids[n] = identity(s.t, c, fmt.Sprint("client", n))
	}
	for _, name := range []string{"a", "b", "{c}d"} {
		p := &place{scene: s, name: name}
		p.locks = newLocks(p)
		p.families = []family{p.locks, newLeased(p), newCounting(p), newLatches(p), newBarriers(p)}
		s.places = append(s.places, p)
	}
}

func (s *scene) play(steps int) {
	s.open()
	all := s.random
	for range steps {
		// What a step does may depend on how fast it was. So that the next ones do not, each has its own.
		s.random = rand.New(rand.NewPCG(all.Uint64(), 0))
		p := s.places[s.random.IntN(len(s.places))]
		p.bounded("a step", p.step)
	}
	for _, p := range s.places {
		for _, f := range p.families {
			p.bounded("the end of the "+f.kind(), f.end)
		}
		if p.occupant() == nil && p.mayBecome(p.locks) {
			p.bounded("a linger", p.locks.linger)
		}
	}
	for _, c := range s.clients {
		require.NoError(s.t, c.Shutdown(s.t.Context()), s.about)
		c.Close()
	}
	redistest.OnlyExpiring(s.t, s.plain)
	for _, p := range s.places {
		p.locks.gone()
	}
	require.NoError(s.t, s.plain.Do(s.t.Context(), s.plain.B().Flushall().Build()).Error()) // barriers stay
}

// stuck is longer than anything takes that is done at a time: the waits in it are for long at most.
const stuck = time.Minute

// bounded does something. When it hangs, as a call may that is never woken, that is told with all that was
// done before: nobody can fail the test but its goroutine, which hangs.
func (p *place) bounded(what string, do func()) {
	hangs := time.AfterFunc(stuck, func() {
		debug.SetTraceback("all") // it shows the call
		panic(fmt.Sprintf("%s hangs for %v. Before it under %s", what, stuck, p.told()))
	})
	defer hangs.Stop()
	p.heard()
	do()
}

// identity returns how the owner ids of a client begin.
func identity(t *testing.T, c *latchkey.Client, name string) string {
	l, err := rlock.New(c, name)
	require.NoError(t, err)
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	state, err := l.Inspect(t.Context())
	require.NoError(t, err)
	require.True(t, state.Holder.Mine)
	require.NoError(t, h.Unlock(t.Context()))
	id, _, ok := strings.Cut(state.Holder.Owner, ":")
	require.True(t, ok, state.Holder.Owner)
	return id
}

// occupant is the family that the name is of now, nil when it is free.
func (p *place) occupant() family {
	for _, f := range p.families {
		if f.there() {
			return f
		}
	}
	return nil
}

// step does one thing. Most are of one kind for a while, so that it goes through many states.
func (p *place) step() {
	if p.one(25) {
		p.favour = p.random.IntN(len(p.families))
		if p.favour == len(p.families)-1 && !p.one(4) { // a barrier cannot be deleted
			p.favour = 0
		}
	}
	f, is := p.families[p.favour], p.occupant()
	switch {
	case p.one(5):
		f = p.families[p.random.IntN(len(p.families))]
	case is != nil:
		f = is
	}
	if p.locks != f {
		p.locks.depart()
	}
	switch {
	case is == nil && !p.mayBecome(f):
	case is == nil && f.kind() == "barrier" && !p.one(4):
	case is == nil:
		for _, other := range p.families {
			if other != f && other.queued() > 0 { // they wait for the name to be of their kind
				if locks, ok := f.(*locks); ok && other.queued() < 3 && p.one(20) { // it takes them two seconds
					locks.displace(other.(interface{ displaced() }))
				}
				return
			}
		}
		f.step()
	case is == f:
		f.step()
	case !is.text() || !f.text():
		f.stray()
		is.check()
	}
}

// one is true in one of n cases.
func (p *place) one(n int) bool { return p.random.IntN(n) == 0 }

// pick returns one of some.
func pick[T any](p *place, of ...T) T { return of[p.random.IntN(len(of))] }

// client picks one.
func (p *place) client() int { return p.random.IntN(len(p.clients)) }

// tell notes what was done, and when.
func (p *place) tell(format string, args ...any) {
	p.story = append(p.story, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

// told is what was done under the name, for a failure.
func (p *place) told() fmt.Stringer { return history{p} }

type history struct{ *place }

func (p history) String() string {
	for _, c := range p.calls {
		if c.over() {
			p.tell("(%s has returned %v)", c.what, c.err)
		} else {
			p.tell("(%s waits, and was queued %d times)", c.what, c.queued.Load())
		}
	}
	return fmt.Sprintf("%s, name %q:\n%s\n%s\nThe clients said:\n%s", p.about, p.name, strings.Join(p.story, "\n"), p.inRedis(), p.log.String())
}

// same compares, and notes what was done.
func (p *place) same(want, got any, what string, args ...any) {
	p.t.Helper()
	what = fmt.Sprintf(what, args...)
	p.tell("%s: %v", what, got)
	p.done[p.generic(what)+": "+p.generic(fmt.Sprint(got))]++
	require.Equal(p.t, want, got, p.told())
}

// invalid checks the error of a constructor.
func (p *place) invalid(err error) {
	p.t.Helper()
	require.Equal(p.t, "ErrInvalid", kinds(err))
}

// generic drops the numbers, and whose it was.
func (p *place) generic(what string) string {
	what = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '-' {
			return -1
		}
		return r
	}, what)
	_, what, _ = strings.Cut(" "+what, " ")
	return what
}

// soon waits until f says nothing any more.
func (p *place) soon(f func() string) {
	p.t.Helper()
	p.within(long, f)
}

// within is soon, for so long.
func (p *place) within(d time.Duration, f func() string) {
	p.t.Helper()
	wrong := f()
	for end := time.Now().Add(d); wrong != ""; wrong = f() {
		if time.Now().After(end) {
			require.FailNow(p.t, wrong, p.told())
		}
		<-time.After(200 * time.Microsecond)
	}
}

// now requires that f says nothing at once.
func (p *place) now(f func() string) {
	p.t.Helper()
	if wrong := f(); wrong != "" {
		require.FailNow(p.t, wrong, p.told())
	}
}

// ended returns a context that has ended, and what errors say then.
func (p *place) ended() (context.Context, string) {
	if p.one(2) {
		ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		cancel()
		return ctx, "DeadlineExceeded"
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx, "Canceled"
}

// whose is the client of an owner id, -1 for nobody's.
func (s *scene) whose(owner string) int {
	id, _, _ := strings.Cut(owner, ":")
	return slices.Index(s.ids[:], id)
}
