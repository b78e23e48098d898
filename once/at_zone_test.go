package once

import (
	"testing"
	"time"
	_ "time/tzdata" // a machine may have no tables of zones

	"github.com/stretchr/testify/require"
)

// everySo is due at all times that are whole numbers of a period after midnight, by the wall.
type everySo struct{ period, after time.Duration }

func (e everySo) Next(after time.Time) time.Time {
	return after.Add(-e.after).Truncate(e.period).Add(e.period + e.after)
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

// What a clock on the wall shows is a moment: the first one if it comes twice, and the end of the gap if it never does.
func TestMoments(t *testing.T) {
	for _, test := range []struct{ zone, shows, at string }{
		{"UTC", "2026-03-29 02:30", "2026-03-29 02:30"},
		{"Europe/Berlin", "2026-01-01 03:00", "2026-01-01 02:00"},
		{"Europe/Berlin", "2026-03-29 01:59", "2026-03-29 00:59"},
		{"Europe/Berlin", "2026-03-29 02:00", "2026-03-29 01:00"},
		{"Europe/Berlin", "2026-03-29 02:30", "2026-03-29 01:00"},
		{"Europe/Berlin", "2026-03-29 03:00", "2026-03-29 01:00"},
		{"Europe/Berlin", "2026-10-25 01:59", "2026-10-24 23:59"},
		{"Europe/Berlin", "2026-10-25 02:00", "2026-10-25 00:00"},
		{"Europe/Berlin", "2026-10-25 02:30", "2026-10-25 00:30"},
		{"Europe/Berlin", "2026-10-25 03:00", "2026-10-25 02:00"},
		{"America/New_York", "2026-03-08 02:30", "2026-03-08 07:00"},
		{"America/New_York", "2026-11-01 01:30", "2026-11-01 05:30"},
		{"America/Sao_Paulo", "2018-11-04 00:00", "2018-11-04 03:00"},   // a day without a midnight
		{"Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-03 15:30"}, // half an hour
		{"Australia/Lord_Howe", "2026-04-05 01:45", "2026-04-04 14:45"},
		{"Pacific/Apia", "2011-12-30 12:00", "2011-12-30 10:00"}, // a day that there was not
		{"Asia/Kathmandu", "2026-05-05 05:05", "2026-05-04 23:20"},
	} {
		shows, err := time.Parse("2006-01-02 15:04", test.shows)
		require.NoError(t, err)
		require.Equal(t, test.at, moment(shows, zone(t, test.zone)).UTC().Format("2006-01-02 15:04"), "%s in %s", test.shows, test.zone)
	}
}

// A day has one tick at each time of the wall, in every zone and on every day, and they come in order.
func TestTicksOfAWall(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca"} {
		z := zone(t, name)
		for after, want := range map[time.Duration]int{150 * time.Minute: 365, 0: 365} {
			w := wall{everySo{24 * time.Hour, after}, z}
			at, end := time.Date(2026, 1, 1, 0, 0, 0, 0, z).Add(-time.Second), time.Date(2027, 1, 1, 0, 0, 0, 0, z)
			days := map[string]bool{}
			for {
				next, ok := w.next(at)
				require.True(t, ok)
				require.True(t, next.After(at))
				if !next.Before(end) {
					break
				}
				days[next.In(z).Format(time.DateOnly)] = true
				if shown(next, z).Equal(shown(next, z).Truncate(24 * time.Hour).Add(after)) {
					at = next
					continue
				}
				require.Less(t, shown(next, z).Sub(shown(next, z).Truncate(24*time.Hour).Add(after)), 61*time.Minute, "at the end of a gap")
				at = next
			}
			require.Len(t, days, want, "%s in %s", after, name)
		}
	}
	berlin := zone(t, "Europe/Berlin")
	for day, want := range map[string]int{"2026-03-29": 46, "2026-10-25": 48, "2026-06-01": 48} {
		begin, err := time.ParseInLocation(time.DateOnly, day, berlin)
		require.NoError(t, err)
		w, n := wall{everySo{30 * time.Minute, 0}, berlin}, 0
		for at, ok := w.next(begin.Add(-1)); ok && at.In(berlin).Format(time.DateOnly) == day; at, ok = w.next(at) {
			n++
		}
		require.Equal(t, want, n, day)
	}
}

// What is listed is what the scripts need: from the last tick that is due to the next one; with all, from the last that is over.
func TestListed(t *testing.T) {
	w := wall{everySo{24 * time.Hour, 3 * time.Hour}, zone(t, "Europe/Berlin")}
	now := time.Date(2026, 6, 10, 12, 0, 0, 0, time.UTC)
	day := func(d int) int64 { return time.Date(2026, 6, d, 1, 0, 0, 0, time.UTC).UnixMilli() }
	require.Equal(t, []int64{day(10), day(11)}, w.list(false)(now.UnixMilli(), 0))
	require.Equal(t, []int64{day(10), day(11)}, w.list(false)(now.UnixMilli(), day(7)))
	require.Equal(t, []int64{day(7), day(8), day(9), day(10), day(11)}, w.list(true)(now.UnixMilli(), day(7)))
	require.Equal(t, []int64{day(10), day(11), day(12)}, w.list(true)(now.UnixMilli(), day(11)), "the clock was set back")
	many := wall{everySo{time.Second, 0}, time.UTC}.list(true)(now.UnixMilli(), day(1))
	require.Greater(t, len(many), 1002)
	require.LessOrEqual(t, len(many), 2*mostListed+1)
	require.Equal(t, now.UnixMilli()+1000, many[len(many)-1])
	none := wall{until{now.Add(-time.Hour)}, time.UTC}
	require.Equal(t, []int64{now.Add(-time.Hour).UnixMilli(), now.Add(never).UnixMilli()}, none.list(true)(now.UnixMilli(), 0), "there is no further one")
	first := wall{until{now.Add(time.Hour)}, time.UTC}
	require.Equal(t, []int64{0, now.Add(time.Hour).UnixMilli()}, first.list(false)(now.UnixMilli(), 0), "there was none before")
}

// until is due once.
type until struct{ at time.Time }

func (u until) Next(after time.Time) time.Time {
	if after.Before(u.at) {
		return u.at
	}
	return time.Time{}
}
