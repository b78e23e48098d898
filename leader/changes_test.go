package leader_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// fleet is some processes that campaign, each through a proxy of its own, and what they have said.
type fleet struct {
	server  *redistest.Server
	members []*member
	leads   chan lead

	mu    sync.Mutex
	terms map[int64]*span
	over  int // overruns
	wait  sync.WaitGroup
}

type member struct {
	*redistest.Worker

	proxy *redistest.Proxy
}

// lead is a term that has begun.
type lead struct {
	by    *member
	token int64
	at    int64 // ns since the epoch
}

// span is in which time a term was trusted, in ns since the epoch.
type span struct{ token, first, last int64 }

const fleetLease = 400 * time.Millisecond

func (f *fleet) start(t *testing.T, p *redistest.Proxy) *member {
	m := &member{redistest.StartWorker(t, fmt.Sprint(p.Addr, " ", fleetLease.Milliseconds(), " stays")), p}
	f.wait.Go(func() {
		for line := range m.Lines() {
			var what string
			var token, at int64
			if n, _ := fmt.Sscan(line, &what, &token, &at); n == 3 {
				f.heard(m, what, token, at)
			} else if strings.HasPrefix(line, "error") {
				t.Error(line)
			}
		}
	})
	return m
}

func (f *fleet) heard(by *member, what string, token, at int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch what {
	case "leads":
		f.terms[token] = &span{token, at, at}
		f.leads <- lead{by, token, at}
	case "trusts":
		f.terms[token].last = max(f.terms[token].last, at)
	case "overrun":
		f.over++
	}
}

// next is the term that begins after another one.
func (f *fleet) next(t *testing.T, after int64) lead {
	t.Helper()
	for {
		select {
		case l := <-f.leads:
			if l.token > after {
				return l
			}
		case <-time.After(long):
			require.FailNow(t, "nobody leads")
		}
	}
}

// Leaders are killed, stopped and cut off from Redis: never do two trust that they lead, tokens of terms
// grow, and the next one leads after the lease, 100 ms later at most.
// Rule 44.
func TestMeasuredChanges(t *testing.T) {
	changes := int(redistest.Longer(15, 200))
	f := &fleet{server: redistest.NewProcess(t), leads: make(chan lead, 10_000), terms: map[int64]*span{}}
	for range 4 {
		f.members = append(f.members, f.start(t, redistest.NewProxy(t, f.server)))
	}
	now := f.next(t, 0)
	var gaps []time.Duration
	counts := map[string]int{}
	for i := range changes {
		what := []string{"killed", "stopped", "cut off"}[i%3]
		counts[what]++
		<-time.After(rand.N(2 * fleetLease / 3)) // at any moment between two renewals
		began := time.Now()
		switch what {
		case "killed":
			now.by.Kill()
		case "stopped":
			now.by.Signal(t, redistest.Stop)
		default:
			now.by.proxy.Silence(true)
		}
		next := f.next(t, now.token)
		gaps = append(gaps, time.Unix(0, next.at).Sub(began))
		switch what {
		case "killed":
			f.members[slices.Index(f.members, now.by)] = f.start(t, now.by.proxy)
		case "stopped":
			now.by.Signal(t, redistest.Continue)
		default:
			now.by.proxy.Silence(false)
			now.by.proxy.KillAll()
		}
		now = next
	}
	for _, m := range f.members {
		m.Kill()
	}
	f.wait.Wait()

	all := make([]*span, 0, len(f.terms))
	for _, s := range f.terms {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *span) int { return int(a.first - b.first) })
	for i := 1; i < len(all); i++ {
		require.Greater(t, all[i].token, all[i-1].token, "tokens of terms grow")
		require.Greater(t, all[i].first, all[i-1].last, "two trusted that they lead")
	}
	slices.Sort(gaps)
	late := 0
	for _, gap := range gaps {
		if gap > fleetLease+100*time.Millisecond {
			late++
		}
	}
	t.Logf("%d changes (%v), %d terms, %d overruns; the next one led after %v (median), %v (max); %d later than the lease of %v and 100ms",
		changes, counts, len(all), f.over, gaps[len(gaps)/2].Round(time.Millisecond), gaps[len(gaps)-1].Round(time.Millisecond), late, fleetLease)
	require.LessOrEqual(t, late, 1+changes/20, "once in a while")
	require.Less(t, gaps[len(gaps)-1], fleetLease+2*time.Second, "nobody is forgotten")
}
