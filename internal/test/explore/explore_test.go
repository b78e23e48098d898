package explore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	redistest.Main(m)
}

var (
	one       = [][]string{{"L"}, {"L"}}
	two       = [][]string{{"L", "L"}, {"L"}}
	busy      = [][]string{{"LL", "L"}, {"L"}}
	trying    = [][]string{{"L", "T"}, {"L"}}
	three     = [][]string{{"L"}, {"L"}, {"L"}}
	readers   = [][]string{{"R", "R"}, {"W"}}
	writers   = [][]string{{"W", "R"}, {"W"}}
	turncoats = [][]string{{"D", "R"}, {"W"}}      // a write hold becomes a read hold
	tryers    = [][]string{{"R", "w"}, {"W", "r"}} // some do not wait
	singles   = [][]string{{"1", "1"}, {"2"}}
	pairs     = [][]string{{"2", "1"}, {"1"}}
)

// scenes are small, so that much of each is seen.
func scenes() (all []scene) {
	for _, lock := range []scene{inLine, fair, lingers} {
		all = append(all,
			lock.with(one), lock.with(two), lock.with(busy), lock.with(three), lock.with(trying),
			lock.with(two, cancels), lock.with(two, cancels, cancels), lock.with(busy, cancels), lock.with(trying, cancels),
			lock.with(one, breaks), lock.with(two, breaks), lock.with(one, deafens), lock.with(two, deafens), lock.with(two, breaks, cancels),
			lock.with(two, deafens, cancels), lock.with(two, deafens, deafens), lock.with(three, dies), lock.with(two, dies, cancels), lock.with(two, closes), lock.with(busy, closes),
			lock.with(one, passes, passes), lock.with(two, passes, passes), lock.with(one, forces), lock.with(two, forces, deafens),
		)
	}
	for _, users := range [][][]string{busy, two} {
		all = append(all, budgeted.with(users), budgeted.with(users, cancels), budgeted.with(users, breaks), budgeted.with(users, breaks, cancels),
			budgeted.with(users, deafens), budgeted.with(users, closes), budgeted.with(users, dies), budgeted.with(users, passes, passes))
	}
	for _, users := range [][][]string{readers, writers, turncoats, tryers} {
		all = append(all,
			halves.with(users), halves.with(users, cancels), halves.with(users, cancels, cancels), halves.with(users, breaks), halves.with(users, deafens),
			halves.with(users, closes), halves.with(users, dies), halves.with(users, passes, passes), halves.with(users, forces),
		)
	}
	for _, users := range [][][]string{singles, pairs} {
		all = append(all,
			permits.with(users), permits.with(users, cancels), permits.with(users, cancels, cancels), permits.with(users, breaks), permits.with(users, deafens),
			permits.with(users, closes), permits.with(users, dies), permits.with(users, passes, passes),
		)
	}
	for _, users := range [][][]string{{{"M"}, {"M"}}, {{"M"}, {"F"}}, {{"M", "L"}, {"F"}}, {{"O"}, {"M"}, {"L"}}, {{"m", "L"}, {"M"}}} {
		all = append(all,
			several.with(users), several.with(users, cancels), several.with(users, breaks), several.with(users, deafens), several.with(users, closes),
			several.with(users, dies), several.with(users, passes), several.with(users, breaks, cancels),
		)
	}
	all = append(all, asking(halves, readers, turncoats)...)
	all = append(all, asking(permits, singles, pairs)...)
	all = append(all, asking(lingers, two)...)
	return append(all, spins.with(one), spins.with(two, cancels), spins.with(one, breaks), spins.with(two, closes))
}

// asking are scenes of clients whose scripts ask for keys.
func asking(s scene, by ...[][]string) (all []scene) {
	s = s.declared()
	for _, users := range by {
		all = append(all, s.with(users), s.with(users, cancels), s.with(users, breaks), s.with(users, deafens), s.with(users, dies), s.with(users, passes, passes))
	}
	return all
}

// length is for how long a scene is searched.
func length(t *testing.T) time.Duration {
	if text := os.Getenv("LATCHKEY_EXPLORE"); text != "" {
		d, err := time.ParseDuration(text)
		require.NoError(t, err)
		return d
	}
	if redistest.Brief() {
		return 100 * time.Millisecond
	}
	return time.Duration(redistest.Longer(500, 60_000)) * time.Millisecond
}

// Nothing that must be true is broken, whatever happens in which order.
func TestScenes(t *testing.T) {
	seed, length := redistest.Seed(t), length(t)
	t.Logf("LATCHKEY_SEED=%d", seed)
	var found atomic.Bool
	var total tally
	t.Cleanup(func() { t.Log(total.String()) })
	some := 0 // of those by chance, in a first run of the tests: each takes a while to begin
	if redistest.Brief() && os.Getenv("LATCHKEY_EXPLORE") == "" {
		some = 8
	}
	for n, s := range scenes() {
		if some > 0 && (uint64(n)+seed)%uint64(some) != 0 {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			search := &search{scene: s, random: rand.New(rand.NewPCG(seed, uint64(n))), found: &found}
			search.explore(t, length)
			total.add(search)
			t.Log(search.String())
			require.Empty(t, search.broken, "LATCHKEY_SEED=%d\n%s", seed, strings.Join(search.broken, "\n  "))
			require.True(t, search.ends > 0 || found.Load(), "no path came to its end: %s", search)
		})
	}
}

// tally adds up what searches have seen.
type tally struct {
	mu                                                   sync.Mutex
	scenes, complete, states, open, runs, ends, diverged int
}

func (a *tally) add(s *search) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scenes++
	a.states, a.open, a.runs, a.ends, a.diverged = a.states+len(s.visited), a.open+len(s.open), a.runs+s.runs, a.ends+s.ends, a.diverged+s.diverged
	if len(s.open) == 0 {
		a.complete++
	}
}

func (a *tally) String() string {
	return fmt.Sprintf("%d scenes, %d of them complete: %d states, %d steps not taken, %d runs, %d of them to the end, %d diverged",
		a.scenes, a.complete, a.states, a.open, a.runs, a.ends, a.diverged)
}
