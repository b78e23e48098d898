package once_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
)

// fleet is processes that take part in one job.
type fleet struct {
	t      *testing.T
	server *redistest.Server
	diary  *diary
	mode   string
	all    []*redistest.Worker
	ticks  int
	period time.Duration
}

// newFleet begins with tick 0 two seconds from now: until then the processes start.
func newFleet(t *testing.T, s *redistest.Server, n int, period, takes time.Duration, missed string) *fleet {
	path := filepath.Join(t.TempDir(), "diary")
	f := &fleet{t: t, server: s, diary: openDiary(path, n), ticks: n, period: period}
	f.mode = fmt.Sprintf("ticks %s %s %d %d %d %s", s.Addr, path, n, period.Milliseconds(), takes.Milliseconds(), missed)
	f.diary.first.Store(time.Now().Add(2 * time.Second).Truncate(period).UnixNano())
	for range processes {
		f.all = append(f.all, f.start())
		<-time.After(rand.N(60 * time.Millisecond)) // at random moments: that is what is tested
	}
	for _, w := range f.all {
		w.Next(t, "ready")
	}
	return f
}

func (f *fleet) start() *redistest.Worker {
	return redistest.StartWorker(f.t, f.mode, "LATCHKEY_TEST_LEASE="+lease.String())
}

// last is when the last tick is due, by the machine's clock.
func (f *fleet) last() time.Time {
	return time.Unix(0, f.diary.first.Load()).Add(time.Duration(f.ticks-1) * f.period)
}

// written returns how many ticks have been run, and which have not.
func (f *fleet) written() (n int, missing []int) {
	for i := range f.ticks {
		if f.diary.Word(diaryWords+i).Load() > 0 {
			n++
		} else {
			missing = append(missing, i)
		}
	}
	return n, missing
}

// A job of no time on 8 processes that began at different moments: one run a tick, and no other.
// Rule 47.
func TestSoakShortJob(t *testing.T) {
	for _, missed := range []string{"skip", "once", "all"} {
		t.Run(missed, func(t *testing.T) {
			n, period := int(redistest.Longer(20, 300)), 100*time.Millisecond
			if missed != "all" { // what a busy machine delays by a period is missed
				n, period = n/4, 500*time.Millisecond
			}
			f := newFleet(t, redistest.NewProcess(t), n, period, time.Millisecond, missed)
			<-time.After(time.Until(f.last().Add(time.Second)))
			d := f.diary
			_, missing := f.written()
			require.Empty(t, missing)
			require.Zero(t, d.repeated.Load())
			require.Zero(t, d.stale.Load())
			require.Zero(t, d.overlaps.Load())
			t.Logf("%d ticks of %v by %d processes: one run each; the latest began %v after its tick", n, f.period, processes,
				time.Duration(d.latest.Load()).Round(time.Millisecond))
		})
	}
}

// A job that takes longer than its period does not overlap itself, and says what it does about the ticks that
// come meanwhile.
// Rule 47.
func TestLongJob(t *testing.T) {
	redistest.Together(t)
	const period, ticks = 100 * time.Millisecond, 12
	for missed, gaps := range map[once.Missed][]time.Duration{
		once.Skip: {2 * period}, once.RunOnce: {period, 2 * period}, once.RunAll: {period},
	} {
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			began := make(chan time.Time, 100)
			running := false // read and written by one at a time, which the race detector sees
			for range 4 {
				runsJob(t, open(t, s.Option()), period, func(_ context.Context, run *once.Run) error {
					if running {
						t.Error("it overlaps itself")
					}
					running = true
					began <- run.Tick()
					time.Sleep(130 * time.Millisecond)
					running = false
					return nil
				}, once.WithMissed(missed))
			}
			last, seen := <-began, map[time.Duration]bool{}
			for range ticks {
				tick := <-began
				seen[tick.Sub(last)] = true
				last = tick
			}
			require.ElementsMatch(t, gaps, slices.Collect(maps.Keys(seen)), "%v", missed)
		})
	}
}

// 8 processes, of which the one that runs is killed every second, connections that are killed, and a server
// whose clock is set forth and back: all ticks are run, and written once.
// Rule 47.
func TestSoakTicks(t *testing.T) {
	n := int(redistest.Longer(120, 2000))
	s := redistest.NewJumping(t, "--maxclients", "1000")
	f := newFleet(t, s, n, 50*time.Millisecond, 5*time.Millisecond, "all")
	d := f.diary
	plain := s.Client(t)
	d.bound.Store(int64(lease + 100*time.Millisecond))
	kill := func(kind string) {
		require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes").Build()).Error())
	}
	kills, cuts, jumps, began := 0, 0, 0, time.Now()
	connections, killed, jumped := time.NewTicker(300*time.Millisecond), time.NewTicker(time.Second), time.NewTicker(2500*time.Millisecond)
	defer connections.Stop()
	defer killed.Stop()
	defer jumped.Stop()
	end := time.After(time.Until(f.last()) + time.Second)
	offset := time.Duration(0)
	for running := true; running; {
		select {
		case <-end:
			running = false
		case <-connections.C:
			kill([]string{"normal", "pubsub"}[cuts%2])
			cuts++
		case <-killed.C:
			for i, w := range f.all {
				if int64(w.PID()) == d.pid.Load() {
					w.Kill()
					f.all[i] = f.start()
					kills++
					break
				}
			}
		case <-jumped.C:
			if offset == 0 {
				d.jumped.Store(time.Now().UnixNano())
				d.offset.Store(int64(time.Second))
				s.Jump(t, time.Second)
				offset = time.Second
			} else {
				s.Jump(t, -time.Second)
				d.offset.Store(0)
				offset = 0
			}
			jumps++
		}
	}
	if offset != 0 { // the ticks until then are due by the server's clock already
		s.Jump(t, -offset)
	}
	require.Eventually(t, func() bool { written, _ := f.written(); return written == n }, 20*time.Second, 10*time.Millisecond, "%v", missing{f})
	for _, w := range f.all {
		w.Kill()
	}
	t.Logf("%d ticks in %v: %d kills, %d times connections, %d jumps; %d runs, %d repeated after a kill, %d stale; late by more than %v: %d, which began %d times, the latest by %v; %d overlapped when the clock was set forward",
		n, time.Since(began).Round(time.Millisecond), kills, cuts, jumps, d.runs.Load(), d.repeated.Load(), d.stale.Load(),
		time.Duration(d.bound.Load()), d.late.Load(), d.delays.Load(), time.Duration(d.latest.Load()).Round(time.Millisecond), d.overlaps.Load())
	require.Zero(t, d.twice.Load(), "a tick was run again as if for the first time")
	require.LessOrEqual(t, d.overlaps.Load(), int64(jumps), "a clock that is set forward ends leases before their holders know")
	require.LessOrEqual(t, d.repeated.Load(), int64(kills+cuts), "only what was interrupted is repeated")
	require.LessOrEqual(t, d.delays.Load(), int64(kills), "one for each kill")
	require.Positive(t, kills)
}

// missing says which ticks are.
type missing struct{ *fleet }

func (m missing) String() string {
	_, all := m.written()
	return fmt.Sprint(all)
}
