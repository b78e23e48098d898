package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// monitor looks at all names again and again.
type monitor struct {
	*looker

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

func newMonitor(l *looker, pattern string, interval time.Duration) *monitor {
	return &monitor{looker: l, pattern: pattern, matches: matcher(pattern), interval: interval}
}

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

// sight is what a look has seen.
type sight struct {
	At       time.Time `json:"at"`
	Complete bool      `json:"complete"` // all names were looked for; else clients have told these
	Rows     []row     `json:"names"`

	rows   []row
	counts bool
}

// row is one name.
type row struct {
	report

	LongestWait float64  `json:"longest_wait"` // s; 0: less than a second, or not told
	Rate        *float64 `json:"hand_offs"`    // a second; nil: not counted

	held, wait time.Duration
}

// look looks at what is held or waited for.
func (m *monitor) look(ctx context.Context) (*sight, error) {
	if err := m.find(ctx); err != nil {
		return nil, err
	}
	told, err := m.toldNames(ctx, m.matches)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	grants, counted := m.granted()
	names := slices.Concat(m.names, told)
	slices.Sort(names)
	all, err := m.reports(ctx, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	s := &sight{At: now, Complete: !m.scanned.IsZero(), counts: counted && !m.looked.IsZero()}
	for _, r := range all {
		if n := grants[m.prefix+string(r.Name)]; n > 0 || !r.isFree() {
			row := newRow(r, now)
			if s.counts {
				rate := float64(n) / now.Sub(m.looked).Seconds()
				row.Rate = &rate
			}
			s.rows = append(s.rows, row)
		}
	}
	m.looked, s.Rows = now, s.rows
	if s.Rows == nil {
		s.Rows = []row{}
	}
	return s, nil
}

// find asks for all names, if it is time for that. Only the first look waits for the answer, for a moment.
func (m *monitor) find(ctx context.Context) error {
	if m.finding == nil {
		if time.Since(m.scanned) < scanPause {
			return nil
		}
		finding, began, first := make(chan found, 1), time.Now(), m.looked.IsZero()
		m.finding = finding
		go func() {
			names, err := m.looker.names(ctx, func(ctx context.Context, took time.Duration) error {
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

func newRow(r report, now time.Time) row {
	row := row{report: r}
	if since := r.first().Since; since != nil {
		row.held = now.Sub(*since)
	}
	for _, p := range r.Waiters {
		if p.Since != nil {
			row.wait = max(row.wait, now.Sub(*p.Since))
		}
	}
	row.LongestWait = row.wait.Seconds()
	return row
}

// countGrants counts the messages with which grants are told, until ctx ends. wait waits for that. It has a
// connection of its own: not every server takes commands on one that has subscribed.
func (m *monitor) countGrants(ctx context.Context) (wait func()) {
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
func (m *monitor) hearGrants(ctx context.Context) error {
	listener, _ := m.plain.Dedicate()
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
func (m *monitor) granted() (grants map[string]int, counted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	grants, m.grants = m.grants, map[string]int{}
	return grants, m.counts
}

// column is one of the columns of a row, and how rows are sorted by it.
type column struct {
	title   string
	text    func(row) string
	compare func(a, b row) int // the first one comes first; nil: by the text
}

// whole is a duration in whole seconds; empty for none.
func whole(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.Round(time.Second).String()
}

var columns = []column{
	{"wait", func(r row) string { return whole(r.wait) }, func(a, b row) int { return cmp.Compare(b.wait, a.wait) }},
	{"waiting", func(r row) string { return number(int64(r.Waiting)) }, func(a, b row) int { return cmp.Compare(b.Waiting, a.Waiting) }},
	{"hand-offs/s", func(r row) string {
		if r.Rate == nil || *r.Rate == 0 {
			return ""
		}
		return fmt.Sprintf("%.1f", *r.Rate)
	}, func(a, b row) int { return cmp.Compare(b.rate(), a.rate()) }},
	{"held", func(r row) string { return whole(r.held) }, func(a, b row) int { return cmp.Compare(b.held, a.held) }},
	{"name", func(r row) string { return plainText(string(r.Name)) }, nil},
	{"kind", func(r row) string { return string(r.Kind) }, nil},
	{"holder", func(r row) string {
		switch p := r.first(); {
		case r.Error != "":
			return r.Error.String()
		case r.State != "":
			return r.State
		case p.Label != "":
			return p.Label.String() + more(len(r.Holders))
		default:
			return p.Owner.String() + more(len(r.Holders))
		}
	}, nil},
	{"host", func(r row) string { return r.first().Host.String() }, nil},
	{"pid", func(r row) string { return number(int64(r.first().PID)) }, nil},
	{"note", func(r row) string { return r.note().String() }, nil},
}

func (r row) rate() float64 {
	if r.Rate == nil {
		return 0
	}
	return *r.Rate
}

// more says that there are further holders.
func more(holders int) string {
	if holders < 2 {
		return ""
	}
	return fmt.Sprintf(" and %d more", holders-1)
}

// order is by which column rows are sorted.
type order int

const byLongestWait order = 0

// sort sorts rows by the column, and equal ones by the number that wait and by name.
func (o order) sort(rows []row) {
	slices.SortStableFunc(rows, func(a, b row) int {
		compare := columns[o].compare
		if compare == nil {
			compare = func(a, b row) int { return cmp.Compare(columns[o].text(a), columns[o].text(b)) }
		}
		return cmp.Or(compare(a, b), cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Name, b.Name))
	})
}

func headerRow() (header table.Row) {
	for _, c := range columns {
		header = append(header, c.title)
	}
	return header
}

func (r row) tableRow() (cells table.Row) {
	for _, c := range columns {
		cells = append(cells, c.text(r))
	}
	return cells
}

// summary is all names in a line.
func (s *sight) summary() string {
	held, waiting, rate := 0, 0, 0.0
	for _, r := range s.rows {
		if len(r.Holders) > 0 {
			held++
		}
		waiting += r.Waiting
		rate += r.rate()
	}
	text := fmt.Sprintf("%d held, %d waiting", held, waiting)
	if s.counts {
		text += fmt.Sprintf(", %.1f hand-offs a second", rate)
	}
	if !s.Complete {
		text += "; names are being looked for"
	}
	return text
}
