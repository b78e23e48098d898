package look

import (
	"context"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// Monitor looks at all names again and again. One goroutine at a time may do that.
type Monitor struct {
	looker *Looker

	pattern  string
	interval time.Duration

	matches *regexp.Regexp // the pattern
	names   []string
	finding chan found // while the names are asked for
	scanned time.Time  // when that ended
	looked  time.Time

	mu     sync.Mutex
	counts bool           // grants are counted
	grants map[string]int // by key, since the last look
}

// NewMonitor returns a Monitor of the names that match a pattern, as Redis reads one. interval is how often its owner looks.
func NewMonitor(l *Looker, pattern string, interval time.Duration) *Monitor {
	return &Monitor{looker: l, pattern: pattern, matches: matcher(pattern), interval: interval}
}

// Interval is how often its owner looks.
func (m *Monitor) Interval() time.Duration { return m.interval }

// scanPause is how long after all names were found they are asked for anew. Where there are so many that it takes long, the
// server works for that in a part of the time, one of scanShare.
const scanPause, scanShare = 5 * time.Second, 20

// firstLook is how long the first look waits for all names. Where there are too many, it begins with what clients tell.
const firstLook = 300 * time.Millisecond

// found is what asking for the names has come to.
type found struct {
	names []string
	err   error
}

// Look looks at what is held or waited for.
func (m *Monitor) Look(ctx context.Context) (*Sight, error) {
	if err := m.find(ctx); err != nil {
		return nil, err
	}
	clients, err := m.looker.clients(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	grants, counted := m.granted()
	names := slices.Concat(m.names, toldNames(clients, m.matches))
	slices.Sort(names)
	all, err := m.looker.Reports(ctx, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	s := &Sight{At: now, Complete: !m.scanned.IsZero(), Rows: []Row{}, Clients: clients, Counted: counted && !m.looked.IsZero()}
	for _, r := range all {
		if r.Kind == KindOnce && r.Next != nil || r.Kind == KindLeader {
			s.Scheduled = append(s.Scheduled, r)
		}
		if n := grants[m.looker.Prefix+string(r.Name)]; n > 0 || !r.Free() {
			row := newRow(r, now)
			if s.Counted {
				rate := float64(n) / now.Sub(m.looked).Seconds()
				row.Rate = &rate
			}
			s.Rows = append(s.Rows, row)
		}
	}
	m.looked = now
	return s, nil
}

// find asks for all names, if it is time for that. Only the first look waits for the answer, for a moment.
func (m *Monitor) find(ctx context.Context) error {
	if m.finding == nil {
		if time.Since(m.scanned) < scanPause {
			return nil
		}
		finding, began, first := make(chan found, 1), time.Now(), m.looked.IsZero()
		m.finding = finding
		go func() {
			names, err := m.looker.Names(ctx, func(ctx context.Context, took time.Duration) error {
				if first && time.Since(began) < firstLook {
					return ctx.Err()
				}
				return retry.Sleep(ctx, (scanShare-1)*took)
			}, m.pattern, false)
			finding <- found{names, err}
		}()
	}
	moment := time.Duration(0)
	if m.looked.IsZero() {
		moment = firstLook
	}
	var f found
	select {
	case f = <-m.finding:
	default:
		select {
		case f = <-m.finding:
		case <-time.After(moment):
			return nil
		}
	}
	m.finding = nil
	if f.err == nil {
		m.names, m.scanned = f.names, time.Now()
	}
	return f.err
}

// CountGrants counts the messages with which grants are told, until ctx ends. wait waits for that. It has a
// connection of its own: not every server takes commands on one that has subscribed.
func (m *Monitor) CountGrants(ctx context.Context) (wait func()) {
	m.grants = map[string]int{}
	var over sync.WaitGroup
	over.Go(func() {
		for ctx.Err() == nil {
			err := m.hearGrants(ctx)
			if _, refused := rueidis.IsRedisErr(err); refused { // a user who may not hear them has no rates
				return
			}
			select { // the connection broke
			case <-time.After(m.interval):
			case <-ctx.Done():
			}
		}
	})
	return over.Wait
}

// hearGrants counts them until the connection breaks.
func (m *Monitor) hearGrants(ctx context.Context) error {
	listener, _ := m.looker.Plain.Dedicate()
	defer listener.Close() // and it is not used again: what is subscribed ends with it
	listen := listener.B().Psubscribe().Pattern(lua.Inbox("*")).Build()
	return listener.Receive(ctx, listen, func(message rueidis.PubSubMessage) {
		if told := lua.ParseMessage(message.Message); told.Kind == lua.Grant {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.counts = true
			m.grants[told.Name]++
		}
	})
}

// granted returns what was granted since it was last called, and whether that is known.
func (m *Monitor) granted() (grants map[string]int, counted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	grants, m.grants = m.grants, map[string]int{}
	return grants, m.counts
}
