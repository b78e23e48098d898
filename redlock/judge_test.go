package redlock_test

import (
	"cmp"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest/shared"
)

// section is one of a history, which a process writes through shared memory: it is complete to the moment
// when the process is killed. All times are in ns since the epoch: the processes share a clock.
type section struct {
	begin int64 // Lock had returned, and the hold was trusted even later; 0: there is no section
	end   int64 // the hold was trusted until then at least; 0: it has not come to that
	until int64 // the end of the trust as it was known at the beginning
	token int64
	name  int64 // of the lock
}

// history is the sections of one process.
type history struct {
	sections []section
	used     atomic.Int64
}

// most is how many sections a process has room for.
const most = 200_000

func openHistory(path string) (*history, error) {
	memory, err := shared.Open(path, most*int(unsafe.Sizeof(section{})))
	if err != nil {
		return nil, err
	}
	return &history{sections: unsafe.Slice((*section)(unsafe.Pointer(&memory[0])), most)}, nil
}

// begin writes down that a section has begun. It returns nil when the hold is not trusted any more.
func (h *history) begin(hold *latchkey.Hold, name int64) *section {
	now := time.Now()
	left := hold.Remaining()
	if left <= 0 {
		return nil
	}
	s := &h.sections[h.used.Add(1)-1]
	s.name, s.token, s.until = name, hold.Token(), now.Add(left).UnixNano()
	atomic.StoreInt64(&s.begin, now.UnixNano()) // last: the process may be killed between any two of these
	return s
}

// finish writes down the end: the last moment at which the hold was trusted.
func (h *history) finish(s *section, hold *latchkey.Hold) {
	if s == nil {
		return
	}
	end := time.Now().UnixNano()
	if !hold.Held() {
		end = s.begin + 1 // it is not known when its trust ended
	}
	atomic.StoreInt64(&s.end, max(end, s.begin+1))
}

// verdict is what a judge has found in the histories of all processes.
type verdict struct {
	sections   int
	unfinished int // of processes that were killed meanwhile
	overlaps   int // sections that began while another one of the lock went on
	disorder   int // tokens that are not greater than those of all sections that had begun before
}

// judge looks at sections that have all an end.
func judge(all []section) (v verdict) {
	slices.SortFunc(all, func(a, b section) int { return cmp.Compare(a.begin, b.begin) })
	ended, greatest := map[int64]int64{}, map[int64]int64{}
	for _, s := range all {
		if s.begin < ended[s.name] {
			v.overlaps++
		}
		if s.token <= greatest[s.name] {
			v.disorder++
		}
		ended[s.name], greatest[s.name] = max(ended[s.name], s.end), max(greatest[s.name], s.token)
		v.sections++
	}
	return v
}

// judgeFiles judges the histories of files. killed is when the process of a file was killed: its sections go
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
	at := func(name, begin, end, token int64) section {
		return section{begin: begin, end: end, token: token, name: name}
	}
	for name, c := range map[string]struct {
		all                []section
		overlaps, disorder int
	}{
		"one after the other": {[]section{at(1, 1, 2, 1), at(1, 2, 5, 2), at(2, 1, 9, 1)}, 0, 0},
		"two at a time":       {[]section{at(1, 1, 3, 1), at(1, 2, 4, 2)}, 1, 0},
		"inside a long one":   {[]section{at(1, 1, 9, 1), at(1, 2, 3, 2), at(1, 4, 5, 3)}, 2, 0},
		"one token":           {[]section{at(1, 1, 2, 1), at(1, 3, 4, 1)}, 0, 1},
		"a smaller one":       {[]section{at(1, 1, 2, 2), at(1, 3, 4, 1)}, 0, 1},
		"in the wrong order":  {[]section{at(1, 3, 4, 2), at(1, 1, 2, 1)}, 0, 0},
		"of different locks":  {[]section{at(1, 1, 3, 2), at(2, 2, 4, 1)}, 0, 0},
	} {
		v := judge(c.all)
		require.Equal(t, [2]int{c.overlaps, c.disorder}, [2]int{v.overlaps, v.disorder}, name)
	}
}
