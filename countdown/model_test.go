package countdown_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// model is what a latch may be: how it stands, what became of its generations, and what each waiter may
// have seen.
type model struct {
	status       countdown.Status
	count        int64
	participants string
	fates        []error  // of the generations, as an Await is told of them
	seen         []string // of each waiter the possibilities: '.' nothing yet, 'n' it was not set, 'a' the first generation, ...
}

// errPending is the fate of a generation that goes on, and the result of an Await that has not returned.
var errPending = errors.New("errPending")

// set begins a generation.
func (m model) set(n int64) model {
	m.status, m.count, m.participants = countdown.Shut, n, ""
	m.fates = append(slices.Clone(m.fates), errPending)
	return m
}

// settle says what became of the last generation.
func (m model) settle(fate error) model {
	m.fates = slices.Clone(m.fates)
	m.fates[len(m.fates)-1] = fate
	return m
}

// fate is what a waiter that has seen something is told.
func (m model) fate(seen rune) error {
	switch seen {
	case '.':
		return errPending
	case 'n':
		return countdown.ErrNotSet
	default:
		return m.fates[seen-'a']
	}
}

// looked is the model after a moment in which each waiter that has seen nothing may have looked.
func (m model) looked() model {
	sees := "n"
	if m.status != countdown.NotSet {
		sees = string(rune('a' + len(m.fates) - 1))
	}
	m.seen = slices.Clone(m.seen)
	for i, possible := range m.seen {
		if strings.Contains(possible, ".") && !strings.Contains(possible, sees) {
			m.seen[i] += sees
		}
	}
	return m
}

// explains narrows down what the waiters may have seen to what they were told, and reports whether anything
// is left of each.
func (m model) explains(results []error) (model, bool) {
	m.seen = slices.Clone(m.seen)
	for i, result := range results {
		m.seen[i] = strings.Map(func(seen rune) rune {
			fate := m.fate(seen)
			if errors.Is(result, errPending) || errors.Is(result, fate) { // also no error
				return seen
			}
			return -1
		}, m.seen[i])
		if m.seen[i] == "" {
			return m, false
		}
	}
	return m, true
}

// complete reports whether everybody who has not returned can be waiting for something, all having looked.
func (m model) complete(results []error) bool {
	for i, result := range results {
		if errors.Is(result, errPending) && !strings.ContainsFunc(m.seen[i], func(seen rune) bool { return seen != '.' && errors.Is(m.fate(seen), errPending) }) {
			return false
		}
	}
	return true
}

// operation is what a client does, and what came of it.
type operation struct {
	name   string
	run    func(*countdown.Latch) string
	apply  func(model) (model, string) // what would come of it
	first  func(model) model           // what it does before, and others may come between; nil: nothing
	result string
}

func outcome(v any, err error) string {
	for _, known := range []error{countdown.ErrNotSet, countdown.ErrExpired, latchkey.ErrInvalid} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(v)
}

func setting(n int64, again bool) *operation {
	return &operation{
		name: fmt.Sprintf("set %d again %v", n, again),
		run: func(l *countdown.Latch) string {
			if again {
				return outcome(l.Rearm(context.Background(), n))
			}
			return outcome(l.TrySetCount(context.Background(), n))
		},
		apply: func(m model) (model, string) {
			if m.status == countdown.Shut || m.status == countdown.Open && !again {
				return m, "false"
			}
			return m.set(n), "true"
		},
	}
}

// counting counts down. stated: with which count the latch is set first if it is not; 0: that is an error.
func counting(n int64, participant string, stated int64) *operation {
	o := &operation{
		name: fmt.Sprintf("count %d %s, stated %d", n, participant, stated),
		run: func(l *countdown.Latch) string {
			if participant != "" {
				return outcome(l.CountDownAs(context.Background(), participant))
			}
			return outcome(l.CountDownN(context.Background(), n))
		},
		apply: func(m model) (model, string) {
			switch {
			case m.status == countdown.NotSet:
				return m, countdown.ErrNotSet.Error()
			case participant != "" && strings.Contains(m.participants, participant), m.status == countdown.Open:
				return m, outcome(countdown.Tally{Remaining: m.count}, nil)
			case n > m.count:
				return m, latchkey.ErrInvalid.Error()
			}
			m.count -= n
			m.participants += participant
			if m.count == 0 {
				m.status = countdown.Open
				m = m.settle(nil)
			}
			return m, outcome(countdown.Tally{Remaining: m.count, Counted: true}, nil)
		},
	}
	if stated > 0 {
		o.first = func(m model) model { return m.set(stated) }
	}
	return o
}

func deleting() *operation {
	return &operation{
		name: "delete",
		run:  func(l *countdown.Latch) string { return outcome(l.Delete(context.Background())) },
		apply: func(m model) (model, string) {
			switch m.status {
			case countdown.NotSet:
				return m, "false"
			case countdown.Shut:
				m = m.settle(countdown.ErrDeleted)
			}
			m.status, m.count = countdown.NotSet, 0
			return m, "true"
		},
	}
}

// orders calls f with what comes of every order of the operations in which each gives the result that it
// gave.
func orders(m model, left []*operation, f func(model)) {
	m = m.looked()
	if len(left) == 0 {
		f(m)
		return
	}
	for i, o := range left {
		if o.first != nil && m.status == countdown.NotSet {
			orders(o.first(m), left, f)
		}
		if after, result := o.apply(m); result == o.result {
			orders(after, append(slices.Clone(left[:i]), left[i+1:]...), f)
		}
	}
}

// Clients set, count down, delete and await one latch at the same time. There is always an order of what
// they did that explains all that they were told; and whoever waits for a generation that is over is told
// promptly what became of it.
// Rule 18.
func TestRacesAgainstModel(t *testing.T) {
	s := redistest.New(t)
	var clients []*latchkey.Client
	for range 3 {
		clients = append(clients, open(t, s.Option()))
	}
	names := 0
	rapid.Check(t, func(r *rapid.T) {
		names++
		latch := func(opts ...countdown.Option) *countdown.Latch {
			l, err := countdown.New(rapid.SampledFrom(clients).Draw(r, "client"), fmt.Sprint("latch", names), opts...)
			require.NoError(r, err)
			return l
		}
		ctx, cancel := context.WithCancel(context.Background())
		var waiters sync.WaitGroup
		defer waiters.Wait()
		defer cancel() // whoever waits for a generation that goes on
		var mu sync.Mutex
		var results []error // of the waiters
		possible := []model{{}}
		narrow := func() {
			mu.Lock()
			defer mu.Unlock()
			var left []model
			for _, m := range possible {
				if m, ok := m.explains(results); ok {
					left = append(left, m)
				}
			}
			possible = left
		}
		var history []string
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			var together []*operation
			var sides []*countdown.Latch
			for range rapid.IntRange(0, 2).Draw(r, "waiters") {
				i, l := len(results), latch()
				for n := range possible {
					possible[n].seen = append(slices.Clone(possible[n].seen), ".")
				}
				mu.Lock()
				results = append(results, errPending)
				mu.Unlock()
				waiters.Go(func() {
					err := l.Await(ctx)
					mu.Lock()
					defer mu.Unlock()
					if ctx.Err() == nil {
						results[i] = err
					}
				})
			}
			for range rapid.IntRange(1, 4).Draw(r, "operations") {
				var opts []countdown.Option
				stated := rapid.Int64Range(0, 3).Draw(r, "stated")
				if stated > 0 {
					opts = append(opts, countdown.WithCount(stated))
				}
				sides = append(sides, latch(opts...))
				switch kind := rapid.IntRange(0, 7).Draw(r, "operation"); {
				case kind < 2:
					together = append(together, setting(rapid.Int64Range(1, 3).Draw(r, "n"), rapid.Bool().Draw(r, "again")))
				case kind < 3:
					together = append(together, deleting())
				case kind < 5:
					together = append(together, counting(1, rapid.SampledFrom([]string{"p", "q"}).Draw(r, "participant"), stated))
				default:
					together = append(together, counting(rapid.Int64Range(1, 2).Draw(r, "n"), "", stated))
				}
			}
			var wg sync.WaitGroup
			for i, o := range together {
				wg.Go(func() { o.result = o.run(sides[i]) })
			}
			wg.Wait()
			var told []string
			for _, o := range together {
				told = append(told, o.name+": "+o.result)
			}
			history = append(history, fmt.Sprint(told))
			next := map[string]model{}
			for _, m := range possible {
				orders(m, together, func(m model) { next[fmt.Sprint(m)] = m })
			}
			require.NotEmpty(r, next, "no order explains the last of %v, from one of %v", history, possible)
			possible = possible[:0]
			for _, m := range next {
				possible = append(possible, m)
			}
			narrow()
			require.NotEmpty(r, possible, "nothing explains what waiters were told: %v after %v", results, history)
		}
		require.Eventually(r, func() bool {
			narrow()
			mu.Lock()
			defer mu.Unlock()
			return slices.ContainsFunc(possible, func(m model) bool { return m.complete(results) })
		}, prompt, time.Millisecond, "somebody waits for what is over: %v after %v: %v", results, history, possible)
	})
}

// prompt is less than anybody waits before asking again without having been told.
const prompt = 1500 * time.Millisecond
