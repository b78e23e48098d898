package rwlock_test

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest/shared"
)

// section is one of a history, which a process writes through shared memory. So the history is complete to
// the moment when the process is killed. All times are in ns since the epoch: the processes share a clock.
type section struct {
	begin int64 // Lock had returned, and the hold was trusted even later; 0: there is no section
	end   int64 // the hold was trusted until then at least; 0: it has not come to that
	until int64 // the end of the lease as it was known at the beginning
	token int64
	kind  int64
}

// The kinds of sections.
const (
	reads = iota
	writes
)

// history is the sections of one process.
type history struct {
	sections []section
	used     atomic.Int64
	inside   *atomic.Int64 // how many goroutines of the process are; nil in the test
}

// most is how many sections a process has room for.
const most = 400_000

func openHistory(path string) (*history, error) {
	memory, err := shared.Open(path, most*int(unsafe.Sizeof(section{})))
	if err != nil {
		return nil, err
	}
	return &history{sections: unsafe.Slice((*section)(unsafe.Pointer(&memory[0])), most)}, nil
}

// begin writes down that a section has begun, now or at a moment before. It returns nil when the hold is not
// trusted any more.
func (h *history) begin(hold *latchkey.Hold, kind, before int64) *section {
	now := time.Now()
	left := hold.Remaining()
	if left <= 0 {
		return nil
	}
	if before == 0 {
		before = now.UnixNano()
	}
	s := &h.sections[h.used.Add(1)-1]
	s.kind, s.token, s.until = kind, hold.Token(), now.Add(left).UnixNano()
	atomic.StoreInt64(&s.begin, before) // last: the process may be killed between any two of these
	h.inside.Add(1)
	return s
}

// finish writes down the end: the last moment at which the hold was trusted.
func (h *history) finish(s *section, hold *latchkey.Hold) {
	if s == nil {
		return
	}
	h.inside.Add(-1)
	end := time.Now().UnixNano()
	if !hold.Held() {
		end = 0
	}
	atomic.StoreInt64(&s.end, max(end, s.begin+1))
}

// verdict is what a judge has found in the histories of all processes.
type verdict struct {
	reads, writes int
	unfinished    int // sections of processes that were killed meanwhile
	together      int // at most so many sections of readers at a time
	overlaps      int // sections that began while a writer's went on, or a writer's while any did
	disorder      int // tokens that contradict the order of the sections
}

// judge looks at sections that have all an end.
func judge(all []section) (v verdict) {
	type event struct {
		at   int64
		ends bool
		*section
	}
	events := make([]event, 0, 2*len(all))
	for i := range all {
		s := &all[i]
		events = append(events, event{s.begin, false, s}, event{s.end, true, s})
	}
	slices.SortStableFunc(events, func(a, b event) int {
		switch c := cmp.Compare(a.at, b.at); {
		case c != 0 || a.ends == b.ends:
			return c
		case a.ends: // the clock has no finer steps
			return -1
		default:
			return 1
		}
	})
	inside := [2]int{}
	ended := [2]int64{math.MinInt64, math.MinInt64} // the greatest token of each kind
	for _, e := range events {
		if e.ends {
			inside[e.kind]--
			ended[e.kind] = max(ended[e.kind], e.token)
			continue
		}
		// No token of a section is smaller than that of a writer's before it. A writer's is greater than that
		// of all before it.
		if inside[writes] > 0 || e.kind == writes && inside[reads] > 0 {
			v.overlaps++
		}
		if e.token < ended[writes] || e.kind == writes && e.token <= max(ended[writes], ended[reads]) {
			v.disorder++
		}
		inside[e.kind]++
		v.together = max(v.together, inside[reads])
		if e.kind == writes {
			v.writes++
		} else {
			v.reads++
		}
	}
	return v
}

// judgeFiles judges the histories of files. killed is when the process of a file was killed. Its sections go
// on until then, as long as it could trust them.
func judgeFiles(t testing.TB, paths []string, killed map[string]time.Time) verdict {
	t.Helper()
	var all []section
	unfinished := 0
	for _, path := range paths {
		h, err := openHistory(path)
		require.NoError(t, err)
		for _, s := range h.sections {
			if s.begin == 0 {
				continue
			}
			if s.end == 0 {
				require.Contains(t, killed, path, "a section without an end")
				s.end = max(min(killed[path].UnixNano(), s.until), s.begin+1)
				unfinished++
			}
			all = append(all, s)
		}
	}
	v := judge(all)
	v.unfinished = unfinished
	return v
}

// The judge sees each kind of violation, and none where there is none.
func TestJudge(t *testing.T) {
	at := func(kind, begin, end, token int64) section {
		return section{begin: begin, end: end, token: token, kind: kind}
	}
	for name, c := range map[string]struct {
		all                []section
		overlaps, disorder int
	}{
		"one after the other":          {[]section{at(writes, 1, 2, 1), at(reads, 2, 5, 1), at(reads, 3, 4, 1), at(writes, 5, 6, 2)}, 0, 0},
		"two writers":                  {[]section{at(writes, 1, 3, 1), at(writes, 2, 4, 2)}, 1, 0},
		"a reader beside a writer":     {[]section{at(writes, 1, 3, 1), at(reads, 2, 4, 1)}, 1, 0},
		"a writer beside a reader":     {[]section{at(reads, 1, 3, 1), at(writes, 2, 4, 2)}, 1, 0},
		"two writers with one token":   {[]section{at(writes, 1, 2, 1), at(writes, 3, 4, 1)}, 0, 1},
		"a writer's is not greater":    {[]section{at(reads, 1, 2, 1), at(writes, 3, 4, 1)}, 0, 1},
		"a reader's is smaller":        {[]section{at(writes, 1, 2, 2), at(reads, 3, 4, 1)}, 0, 1},
		"readers' need not be ordered": {[]section{at(reads, 1, 2, 2), at(reads, 3, 4, 1), at(writes, 5, 6, 3)}, 0, 0},
	} {
		v := judge(c.all)
		require.Equal(t, [2]int{c.overlaps, c.disorder}, [2]int{v.overlaps, v.disorder}, name)
	}
}
