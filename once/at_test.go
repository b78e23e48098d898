package once_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// wallTimes is due at all times that are whole numbers of a period after midnight, by the wall.
type wallTimes struct{ period, after time.Duration }

func (w wallTimes) Next(after time.Time) time.Time {
	return after.Add(-w.after).Truncate(w.period).Add(w.period + w.after)
}

// counting counts from when it is asked, as "@every 1h" of a cron expression.
type counting time.Duration

func (c counting) Next(after time.Time) time.Time { return after.Add(time.Duration(c)) }

type notDue struct{}

func (notDue) Next(time.Time) time.Time { return time.Time{} }

// It runs once a day for the whole fleet, also when the clocks are set forward past it, or back.
// Rule 47.
func TestAt(t *testing.T) {
	redistest.Together(t)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for from, test := range map[string]struct {
		lasts time.Duration
		tick  string
	}{
		"2026-01-01T01:29:00Z": {2 * time.Minute, "2026-01-01T01:30:00Z"},
		"2026-03-29T00:29:00Z": {2 * time.Minute, ""},
		"2026-03-29T00:59:00Z": {32 * time.Minute, "2026-03-29T01:00:00Z"},
		"2026-10-25T00:29:00Z": {62 * time.Minute, "2026-10-25T00:30:00Z"},
	} {
		begin, err := time.Parse(time.RFC3339, from)
		require.NoError(t, err)
		redistest.VirtualFrom(t, begin, func(t *testing.T, s *redistest.Server) {
			var ticks []string
			ctx, cancel := context.WithTimeout(t.Context(), test.lasts)
			defer cancel()
			var all []*redistest.Attempt[struct{}]
			for range 2 {
				job, err := once.At(open(t, s.Option()), "a", once.In(berlin, wallTimes{24 * time.Hour, 150 * time.Minute}), func(_ context.Context, run *once.Run) error {
					ticks = append(ticks, run.Tick().UTC().Format(time.RFC3339))
					return nil
				})
				require.NoError(t, err)
				all = append(all, redistest.Begin(t, func(context.Context) (struct{}, error) { return struct{}{}, job.Run(ctx) }))
			}
			for _, a := range all {
				<-a.Ended
				require.ErrorIs(t, a.Err, context.DeadlineExceeded)
			}
			require.Equal(t, test.tick, strings.Join(ticks, " "), from)
		})
	}
}

// What was missed is run in the way that was chosen: of 1,500 ticks none, the last one, or the last thousand.
// Rule 47.
func TestAtMissed(t *testing.T) {
	redistest.Together(t)
	for way, want := range map[once.Missed]int{once.Skip: 0, once.RunOnce: 1, once.RunAll: 1000} {
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			run := func() (ticks []time.Time) {
				c, err := rueidisclient.New(s.Option())
				require.NoError(t, err)
				defer c.Close()
				job, err := once.At(c, "a", wallTimes{time.Minute, 0}, func(_ context.Context, run *once.Run) error {
					ticks = append(ticks, run.Tick())
					return nil
				}, once.WithMissed(way), once.WithLease(5*time.Second))
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
				defer cancel()
				require.ErrorIs(t, job.Run(ctx), context.DeadlineExceeded)
				return ticks
			}
			require.NotEmpty(t, run())
			time.Sleep(1500 * time.Minute) // no process takes part
			back := time.Now()
			var missed []time.Time
			for _, tick := range run() {
				if tick.Before(back) {
					missed = append(missed, tick)
				}
			}
			require.Len(t, missed, want, "%v", way)
			for i, tick := range missed {
				require.Equal(t, back.Truncate(time.Minute).Add(time.Duration(i-want+1)*time.Minute).UTC(), tick, "each once, in their order")
			}
		})
	}
}

// It refuses what it cannot keep.
func TestAtRefuses(t *testing.T) {
	redistest.Together(t)
	c := open(t, redistest.New(t).Option())
	daily := wallTimes{24 * time.Hour, 0}
	for _, test := range []struct {
		schedule once.Schedule
		option   once.JobOption
		says     string
	}{
		{nil, nil, "the schedule is nil"},
		{counting(time.Hour), nil, "the schedule counts from when it is asked: use Every"},
		{counting(24 * time.Hour), nil, "use Every"},
		{notDue{}, nil, "the schedule is never due"},
		{counting(-time.Hour), nil, "the schedule is due before it is asked for"},
		{once.In(time.UTC, nil), nil, "the schedule is nil"},
		{daily, once.WithJitter(time.Second), "less than the period"},
	} {
		_, err := once.At(c, "a", test.schedule, succeeds, test.option)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.ErrorContains(t, err, test.says)
	}
	_, err := once.At(c, "a", daily, nil)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = once.At(c, "a", once.In(nil, daily), succeeds)
	require.NoError(t, err)
}
