package once

import (
	"context"
	"reflect"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// Schedule says when a job is due, as a cron expression of github.com/robfig/cron does:
//
//	daily, err := cron.ParseStandard("0 3 * * *")
type Schedule interface {
	// Next returns the first time after this one, or the zero time. Both are what a clock on the wall shows, written as
	// times in UTC. Several goroutines call it.
	Next(after time.Time) time.Time
}

// At returns a job that runs once at each time of a schedule. But for when it is due, it is as [Every].
//
// The server's clock decides, read in UTC or the zone of [In]. A time that a clock skips in spring is due at that
// moment, once. A time that comes twice in autumn is due the first time, and nothing is due in the repeated hour. All
// processes should set the same schedule, and have the same tables of zones.
//
// At returns ErrInvalid for a schedule that is nil, that is never due, or that counts from when it is asked, as
// "@every 1h" does. A schedule with a zone of its own (CRON_TZ) needs no In: with one, At returns ErrInvalid.
func At(c *latchkey.Client, name string, schedule Schedule, f func(context.Context, *Run) error, opts ...JobOption) (*Job, error) {
	o := settingsOf(opts, JobOption.setJob)
	if err := o.valid(0); err != nil {
		return nil, fail.Wrap(name, err)
	}
	w := wall{schedule, time.UTC}
	if z, ok := schedule.(zoned); ok {
		w = wall(z)
	}
	if w.Schedule == nil {
		return nil, fail.Wrap(name, fail.Invalid("the schedule is nil"))
	}
	if err := w.valid(time.Now()); err != nil {
		return nil, fail.Wrap(name, err)
	}
	return newJob(c, name, f, o, 0, w.list(o.missed != nil && *o.missed == RunAll))
}

// zoned is what In returns: a type of its own, so that At finds it.
type zoned wall

// In returns a schedule for [At] whose times are meant in a zone; nil: in UTC, as without In. [InspectJob] says when a
// job is due next.
func In(zone *time.Location, schedule Schedule) Schedule {
	if zone == nil {
		zone = time.UTC
	}
	return zoned{schedule, zone}
}

// wall is a schedule whose times are what a clock on a wall in the zone shows.
type wall struct {
	Schedule

	zone *time.Location
}

// valid refuses a schedule that is never due, or that counts from when it is asked.
func (w wall) valid(now time.Time) error {
	asked := shown(now, w.zone)
	first := w.Next(asked)
	switch {
	case w.zone != time.UTC && hasZone(w.Schedule):
		return fail.Invalid("the schedule has a zone of its own (CRON_TZ): leave out once.In")
	case first.IsZero():
		return fail.Invalid("the schedule is never due")
	case !first.After(asked):
		return fail.Invalid("the schedule is due before it is asked for")
	}
	second := w.Next(first)
	for _, from := range []time.Time{first, second} {
		if before := from.Add(-time.Millisecond); !from.IsZero() && !w.Next(before).Equal(from) {
			return fail.Invalid("the schedule counts from when it is asked: use Every")
		}
	}
	return nil
}

// hasZone reports whether a schedule has a zone of its own, as github.com/robfig/cron makes it of CRON_TZ: it would read
// what a clock in another zone shows as a time in UTC.
func hasZone(schedule Schedule) bool {
	v := reflect.Indirect(reflect.ValueOf(schedule))
	if v.Kind() != reflect.Struct {
		return false
	}
	field := v.FieldByName("Location")
	if !field.IsValid() || !field.CanInterface() {
		return false
	}
	zone, ok := field.Interface().(*time.Location)
	return ok && zone != nil && zone != time.Local && zone != time.UTC
}

// shown is what a clock in a zone shows at a moment, written as a time in UTC.
func shown(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// moment returns the first time at which a clock in the zone shows what shows says. If the clock skips that, moment
// returns when the clock is set forward.
func moment(shows time.Time, zone *time.Location) time.Time {
	at := time.Date(shows.Year(), shows.Month(), shows.Day(), shows.Hour(), shows.Minute(), shows.Second(), shows.Nanosecond(), zone)
	begins, ends := at.ZoneBounds()
	switch is := shown(at, zone); {
	case is.After(shows): // at has the offset from before the clock was set forward
		return begins
	case is.Before(shows):
		return ends
	}
	if !begins.IsZero() { // the clock may have shown this before it was set back
		_, now := at.Zone()
		_, then := begins.Add(-1).In(zone).Zone()
		if earlier := at.Add(time.Duration(now-then) * time.Second); earlier.Before(begins) && shown(earlier, zone).Equal(shows) {
			return earlier
		}
	}
	return at
}

// next returns the first moment later than after at which the schedule is due, or false if it is never due again.
func (w wall) next(after time.Time) (time.Time, bool) {
	for shows := shown(after, w.zone); ; {
		before := shows
		if shows = w.Next(before); !shows.After(before) {
			return time.Time{}, false
		}
		if at := moment(shows, w.zone); at.After(after) {
			return at, true
		}
	}
}

const (
	never = 100 * 365 * 24 * time.Hour // from now: for a schedule without a further tick
	// mostListed is how many ticks list keeps when more than twice as many are due.
	mostListed = 2000
)

// list returns the function that lists the ticks which the scripts get. If all is set, the list has the missed ticks,
// too.
func (w wall) list(all bool) lua.Lister {
	return func(now, last int64) (ticks []int64) {
		due := time.UnixMilli(now)
		from := w.lastDue(due)
		if all && last > 0 && last < from {
			from = last
		}
		ticks = append(ticks, from)
		for at := time.UnixMilli(from); ; {
			next, more := w.next(at)
			if !more {
				return append(ticks, max(now, last)+never.Milliseconds())
			}
			if ticks = append(ticks, next.UnixMilli()); next.After(due) && next.UnixMilli() > last {
				return ticks
			}
			if len(ticks) > 2*mostListed {
				ticks = ticks[len(ticks)-mostListed:]
			}
			at = next
		}
	}
}

// spans are how far back lastDue looks for a tick, one span after the other: there may be no leap year for eight
// years.
var spans = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 32 * 24 * time.Hour, 366 * 24 * time.Hour, 9 * 366 * 24 * time.Hour}

// lastDue returns the last tick that is due at now, in ms since 1970, or 0 if no tick is due yet.
func (w wall) lastDue(now time.Time) int64 {
	for _, span := range spans {
		at, ok := w.next(now.Add(-span))
		if !ok || at.After(now) {
			continue
		}
		for {
			next, more := w.next(at)
			if !more || next.After(now) {
				return at.UnixMilli()
			}
			at = next
		}
	}
	return 0
}
