package robustness

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ended is a command that was asked for and answered at these times.
func ended(mode, n, asked, begin, result int64) entry {
	return entry{Record: &Record{Kind: Command, Mode: mode, N: n, Asked: asked, Begin: begin, Result: result}}
}

// More plain permits than there are were taken for sure. What may have been given back by then does not
// count.
func TestOverdrawn(t *testing.T) {
	o := Object{Family: Counting, Capacity: 2}
	first, second := ended(take, 1, 10, 20, Done), ended(take, 1, 10, 30, Done)
	for name, test := range map[string]struct {
		more []entry
		want int
	}{
		"as many as there are":     {nil, 0},
		"one more":                 {[]entry{ended(take, 1, 35, 40, Done)}, 1},
		"all there are, drained":   {[]entry{ended(drain, 2, 35, 40, Done)}, 1},
		"refused":                  {[]entry{ended(take, 1, 35, 40, Refused)}, 0},
		"perhaps given back":       {[]entry{ended(put, 1, 36, 90, Unknown), ended(take, 1, 35, 40, Done)}, 0},
		"not given back, for sure": {[]entry{ended(put, 1, 36, 90, Refused), ended(take, 1, 35, 40, Done)}, 1},
		"given back too late":      {[]entry{ended(put, 1, 41, 90, Done), ended(take, 1, 35, 40, Done)}, 1},
	} {
		h := &history{entries: append([]entry{first, second}, test.more...)}
		require.Len(t, h.overdrawn(o), test.want, name)
	}
}

// A section of a process that was killed is trusted until then, unless it was about to be given back.
func TestKilledSections(t *testing.T) {
	const doomed, killed = 1000, 5000
	for name, test := range map[string]struct {
		Record
		want int64
	}{
		"it was inside":              {Record{Begin: 100, End: 200, Until: 9000}, doomed},
		"its trust had ended":        {Record{Begin: 100, End: 200, Until: 700}, 700},
		"its release was on its way": {Record{Begin: 100, End: 200, Until: 9000, Leaving: 300}, 200},
		"it was over":                {Record{Begin: 100, End: 200, Until: 9000, Leaving: 300, Free: 400}, 200},
	} {
		e := newEntry(&test.Record, &member{doomed: doomed, killed: killed})
		require.Equal(t, test.want, e.end, name)
	}
	alive := newEntry(&Record{Begin: 100, End: 200, Until: 9000}, &member{})
	require.Equal(t, int64(200), alive.end)
}

// A token that was in reserve when Redis lost its data may be granted once more, to another client. Any other
// is a fault.
func TestTokenTwice(t *testing.T) {
	const flushed, other = 1_000_000, 9_000_000 // µs
	granted := func(worker uint64, client, token int64) entry {
		return entry{serial: worker, Record: &Record{Kind: Section, Client: client, Token: token, Begin: token, Result: Done}}
	}
	for name, test := range map[string]struct {
		family     Family
		one, again entry
		want       int
	}{
		"of another client":                    {Locks, granted(0, 1, flushed+4_000), granted(0, 2, flushed+4_000), 0},
		"of another process":                   {Locks, granted(0, 1, flushed+4_000), granted(1, 1, flushed+4_000), 0},
		"of the client itself":                 {Locks, granted(0, 1, flushed+4_000), granted(0, 1, flushed+4_000), 1},
		"permits":                              {Leased, granted(0, 1, flushed+4_000), granted(0, 1, flushed+4_000), 0},
		"further ahead than any is in reserve": {Locks, granted(0, 1, flushed+9_000), granted(0, 2, flushed+9_000), 1},
		"of another time":                      {Locks, granted(0, 1, other), granted(0, 2, other), 1},
	} {
		h := &history{
			entries:   []entry{test.one, test.again},
			excusable: []Window{{Name: "flush all", Begin: flushed * 1_000, End: flushed*1_000 + 500_000}},
		}
		require.Len(t, h.unique(Object{Family: test.family}), test.want, name)
	}
}

// A waiter that polls is named as one, whatever is done under its lock besides: no order holds for it.
func TestPollingIsNamed(t *testing.T) {
	for _, o := range newObjects(rngOf(1), Single, 2) {
		for what, polls := range map[int]bool{plain: false, mute: o.Mixed()} {
			c := &client{what: what}
			require.Equal(t, polls, c.polls(o, 0), o.Key)
			require.Equal(t, o.Mixed(), c.polls(o, spins), o.Key)
		}
	}
	require.True(t, Object{Family: Fenced}.Mixed(), "spin locks write with their tokens too")
}

// What a run has kept is still there when its episode runs again, and what it has not kept is not.
func TestWhatWasFoundIsKept(t *testing.T) {
	all := t.TempDir()
	dir := filepath.Join(all, "5")
	kept := func() int {
		names, err := os.ReadDir(all)
		require.NoError(t, err)
		return len(names)
	}
	makeRoom(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "0.log"), nil, 0o600))
	makeRoom(t, dir)
	require.NoFileExists(t, filepath.Join(dir, "0.log"))
	require.Equal(t, 1, kept())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "episode.json"), nil, 0o600))
	makeRoom(t, dir)
	require.NoFileExists(t, filepath.Join(dir, "episode.json"))
	require.Equal(t, 2, kept())
}

// Plain permits that are made, changed and removed by commands, one after the other, have an order if each
// replies what the ones before it have left.
func TestPlainPermitsThatChange(t *testing.T) {
	o := Object{Family: Counting, Capacity: 3, Changes: true}
	at := int64(0)
	said := func(mode, n, value, extra int64) entry {
		at += 10
		e := ended(mode, n, at, at+5, Done)
		e.Token, e.Extra = value, extra
		return e
	}
	for name, test := range map[string]struct {
		commands []entry
		want     int
	}{
		"nobody has made them":    {[]entry{said(erase, 0, 0, 0), said(initialize, 3, 0, 1), said(look, 0, 3, 0)}, 0},
		"the first one made them": {[]entry{said(take, 2, 0, 0), said(add, 4, 5, 0), said(erase, 0, 0, 1), said(erase, 0, 0, 0)}, 0},
		"more than were added":    {[]entry{said(take, 2, 0, 0), said(add, 4, 6, 0)}, 1},
		"made twice":              {[]entry{said(initialize, 3, 0, 1), said(initialize, 3, 0, 1)}, 1},
		"removed twice":           {[]entry{said(erase, 0, 0, 1), said(erase, 0, 0, 1), said(erase, 0, 0, 1)}, 0},
		"taken, and not there":    {[]entry{said(take, 3, 0, 0), said(take, 1, 0, 0)}, 1},
		"fewer than none":         {[]entry{said(take, 3, 0, 0), said(add, -2, -2, 0), said(drain, 0, 0, 0), said(put, 3, 0, 0), said(take, 1, 0, 0)}, 0},
	} {
		h := &history{Outcome: Outcome{Dir: t.TempDir()}, entries: test.commands}
		require.Len(t, h.linear(o), test.want, name)
	}
}

// A waiter was overtaken when one that came long after it was granted before it. Of the line of a client that is
// so for the head.
func TestOvertaken(t *testing.T) {
	section := func(client, asked, begin, free int64) entry {
		const ms = 1_000_000
		return entry{Record: &Record{Kind: Section, Client: client, Asked: asked * ms, Begin: begin * ms, End: free * ms, Free: free * ms}}
	}
	first := section(1, 100, 200, 300)
	for name, test := range map[string]struct {
		sections []entry
		want     int
	}{
		"in order":                          {[]entry{first, section(2, 150, 300, 400), section(3, 160, 3000, 3100)}, 0},
		"by one that came soon after":       {[]entry{first, section(2, 1200, 1300, 1400), section(3, 160, 3000, 3100)}, 0},
		"by one that came long after":       {[]entry{first, section(2, 2900, 2950, 2960), section(3, 160, 3000, 3100)}, 1},
		"in the line behind the first":      {[]entry{section(3, 150, 200, 2800), section(2, 2900, 2950, 2960), section(3, 160, 3000, 3100)}, 0},
		"before the first in the line":      {[]entry{section(3, 500, 2000, 2800), section(2, 2900, 2950, 2960), section(3, 160, 3000, 3100)}, 1},
		"behind one that was long ago over": {[]entry{section(3, 150, 200, 300), section(2, 2900, 2950, 2960), section(3, 160, 3000, 3100)}, 1},
	} {
		h := &history{entries: test.sections}
		require.Len(t, h.overtaken(Object{Family: Locks}), test.want, name)
	}
	h := &history{entries: []entry{section(3, 150, 200, 2800), section(2, 2900, 2950, 2960), section(3, 160, 3000, 3100)}}
	require.Len(t, h.overtaken(Object{Family: Fair}), 1, "a fairlock has no line")
}

// A machine that stood still explains commands without an answer, and nothing else.
func TestStalled(t *testing.T) {
	silent, wrong := Violation{Kind: unavailable}, Violation{Kind: "exclusion"}
	for name, test := range map[string]struct {
		stall time.Duration
		found []Violation
		want  bool
	}{
		"for long enough":      {answers, []Violation{silent, silent}, true},
		"not for long enough":  {answers / 3, []Violation{silent}, false},
		"more is wrong":        {answers, []Violation{silent, wrong}, false},
		"and nothing is wrong": {answers, nil, false},
	} {
		require.Equal(t, test.want, Outcome{Stall: test.stall, Violations: test.found}.Stalled(), name)
	}
}
