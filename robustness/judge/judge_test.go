package judge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// ended is a command that was asked for and answered at these times.
func ended(mode, n, asked, begin, result int64) entry {
	return entry{Record: &witness.Record{Kind: witness.Command, Mode: mode, N: n, Asked: asked, Begin: begin, Result: result}}
}

// More plain permits than there are were taken for sure. What may have been given back by then does not
// count.
func TestOverdrawn(t *testing.T) {
	o := plan.Object{Family: plan.Counting, Capacity: 2}
	first, second := ended(witness.PlainTake, 1, 10, 20, witness.Done), ended(witness.PlainTake, 1, 10, 30, witness.Done)
	for name, test := range map[string]struct {
		more []entry
		want int
	}{
		"as many as there are":     {nil, 0},
		"one more":                 {[]entry{ended(witness.PlainTake, 1, 35, 40, witness.Done)}, 1},
		"all there are, drained":   {[]entry{ended(witness.PlainDrain, 2, 35, 40, witness.Done)}, 1},
		"refused":                  {[]entry{ended(witness.PlainTake, 1, 35, 40, witness.Refused)}, 0},
		"perhaps given back":       {[]entry{ended(witness.PlainPut, 1, 36, 90, witness.Unknown), ended(witness.PlainTake, 1, 35, 40, witness.Done)}, 0},
		"not given back, for sure": {[]entry{ended(witness.PlainPut, 1, 36, 90, witness.Refused), ended(witness.PlainTake, 1, 35, 40, witness.Done)}, 1},
		"given back too late":      {[]entry{ended(witness.PlainPut, 1, 41, 90, witness.Done), ended(witness.PlainTake, 1, 35, 40, witness.Done)}, 1},
	} {
		h := &History{entries: append([]entry{first, second}, test.more...)}
		require.Len(t, h.overdrawn(o), test.want, name)
	}
}

// A section of a process that was killed is trusted until then, unless it was about to be given back.
func TestKilledSections(t *testing.T) {
	const doomed, killed = 1000, 5000
	for name, test := range map[string]struct {
		witness.Record
		want int64
	}{
		"it was inside":              {witness.Record{Begin: 100, End: 200, Until: 9000}, doomed},
		"its trust had ended":        {witness.Record{Begin: 100, End: 200, Until: 700}, 700},
		"its release was on its way": {witness.Record{Begin: 100, End: 200, Until: 9000, Leaving: 300}, 200},
		"it was over":                {witness.Record{Begin: 100, End: 200, Until: 9000, Leaving: 300, Free: 400}, 200},
	} {
		e := newEntry(&test.Record, witness.Process{Doomed: doomed, Killed: killed})
		require.Equal(t, test.want, e.end, name)
	}
	alive := newEntry(&witness.Record{Begin: 100, End: 200, Until: 9000}, witness.Process{})
	require.Equal(t, int64(200), alive.end)
}

// A token that was in reserve when Redis lost its data may be granted once more, to another client. Any other
// is a fault.
func TestTokenTwice(t *testing.T) {
	const flushed, other = 1_000_000, 9_000_000 // µs
	granted := func(worker uint64, client, token int64) entry {
		return entry{serial: worker, Record: &witness.Record{Kind: witness.Section, Client: client, Token: token, Begin: token, Result: witness.Done}}
	}
	for name, test := range map[string]struct {
		family     plan.Family
		one, again entry
		want       int
	}{
		"of another client":                    {plan.Locks, granted(0, 1, flushed+4_000), granted(0, 2, flushed+4_000), 0},
		"of another process":                   {plan.Locks, granted(0, 1, flushed+4_000), granted(1, 1, flushed+4_000), 0},
		"of the client itself":                 {plan.Locks, granted(0, 1, flushed+4_000), granted(0, 1, flushed+4_000), 1},
		"permits":                              {plan.Leased, granted(0, 1, flushed+4_000), granted(0, 1, flushed+4_000), 0},
		"further ahead than any is in reserve": {plan.Locks, granted(0, 1, flushed+9_000), granted(0, 2, flushed+9_000), 1},
		"of another time":                      {plan.Locks, granted(0, 1, other), granted(0, 2, other), 1},
	} {
		h := &History{
			entries:   []entry{test.one, test.again},
			Excusable: []plan.Window{{Name: "flush all", Begin: flushed * 1_000, End: flushed*1_000 + 500_000}},
		}
		require.Len(t, h.unique(plan.Object{Family: test.family}), test.want, name)
	}
}

// Plain permits that are made, changed and removed by commands, one after the other, have an order if each
// replies what the ones before it have left.
func TestPlainPermitsThatChange(t *testing.T) {
	o := plan.Object{Family: plan.Counting, Capacity: 3, Changes: true}
	at := int64(0)
	said := func(mode, n, value, extra int64) entry {
		at += 10
		e := ended(mode, n, at, at+5, witness.Done)
		e.Token, e.Extra = value, extra
		return e
	}
	for name, test := range map[string]struct {
		commands []entry
		want     int
	}{
		"nobody has made them":    {[]entry{said(witness.PlainErase, 0, 0, 0), said(witness.PlainInitialize, 3, 0, 1), said(witness.PlainLook, 0, 3, 0)}, 0},
		"the first one made them": {[]entry{said(witness.PlainTake, 2, 0, 0), said(witness.PlainAdd, 4, 5, 0), said(witness.PlainErase, 0, 0, 1), said(witness.PlainErase, 0, 0, 0)}, 0},
		"more than were added":    {[]entry{said(witness.PlainTake, 2, 0, 0), said(witness.PlainAdd, 4, 6, 0)}, 1},
		"made twice":              {[]entry{said(witness.PlainInitialize, 3, 0, 1), said(witness.PlainInitialize, 3, 0, 1)}, 1},
		"removed twice":           {[]entry{said(witness.PlainErase, 0, 0, 1), said(witness.PlainErase, 0, 0, 1), said(witness.PlainErase, 0, 0, 1)}, 0},
		"taken, and not there":    {[]entry{said(witness.PlainTake, 3, 0, 0), said(witness.PlainTake, 1, 0, 0)}, 1},
		"fewer than none":         {[]entry{said(witness.PlainTake, 3, 0, 0), said(witness.PlainAdd, -2, -2, 0), said(witness.PlainDrain, 0, 0, 0), said(witness.PlainPut, 3, 0, 0), said(witness.PlainTake, 1, 0, 0)}, 0},
	} {
		h := &History{Episode: Episode{Dir: t.TempDir()}, entries: test.commands}
		require.Len(t, h.linear(o), test.want, name)
	}
}

// Commands of a latch, one after the other, have an order if each replies what the ones before it have left.
func TestLatchCommands(t *testing.T) {
	at := int64(0)
	said := func(mode, n, result, value, extra int64) entry {
		at += 10
		e := ended(mode, n, at, at+5, result)
		e.Token, e.Extra = value, extra
		return e
	}
	const done, refused = witness.Done, witness.Refused
	set := said(witness.LatchSet, 2, done, 0, 1)
	for name, test := range map[string]struct {
		commands []entry
		want     int
	}{
		"counted down":        {[]entry{set, said(witness.LatchDown, 1, done, 1, 1), said(witness.LatchDownAs, 1, done, 0, 1), said(witness.LatchAwait, 0, done, 0, 0)}, 0},
		"opened too early":    {[]entry{set, said(witness.LatchDown, 1, done, 0, 1)}, 1},
		"set twice":           {[]entry{set, said(witness.LatchSet, 2, done, 0, 1)}, 1},
		"set again":           {[]entry{set, said(witness.LatchDown, 2, done, 0, 1), said(witness.LatchSet, 2, done, 0, 0), said(witness.LatchRearm, 2, done, 0, 1)}, 0},
		"counted twice as q":  {[]entry{set, said(witness.LatchDownAs, 1, done, 1, 1), said(witness.LatchDownAs, 1, done, 0, 1)}, 1},
		"more than there are": {[]entry{set, said(witness.LatchDown, 3, refused, 0, witness.LatchInvalid)}, 0},
		"refused for nothing": {[]entry{set, said(witness.LatchDown, 1, refused, 0, witness.LatchInvalid)}, 1},
		"went on while shut":  {[]entry{set, said(witness.LatchAwait, 0, done, 0, 0)}, 1},
		"not set":             {[]entry{said(witness.LatchDown, 1, refused, 0, witness.LatchNotSet), said(witness.LatchAwait, 0, refused, 0, witness.LatchNotSet), said(witness.LatchAwaitOpen, 0, done, 0, 0)}, 0},
		"waited for a set":    {[]entry{said(witness.LatchAwaitSet, 0, done, 0, 0)}, 1},
		"removed":             {[]entry{set, said(witness.LatchRemove, 0, done, 0, 1), said(witness.LatchRemove, 0, done, 0, 0), said(witness.LatchCount, 0, done, 0, 0)}, 0},
		"removed, and there":  {[]entry{set, said(witness.LatchRemove, 0, done, 0, 1), said(witness.LatchCount, 0, done, 2, 0)}, 1},
	} {
		h := &History{Episode: Episode{Dir: t.TempDir()}, entries: test.commands}
		require.Len(t, h.linear(plan.Object{Family: plan.Latch}), test.want, name)
	}
}

// A waiter was overtaken when one that came long after it was granted before it. Of the line of a client that is
// so for the head.
func TestOvertaken(t *testing.T) {
	section := func(client, asked, begin, free int64) entry {
		const ms = 1_000_000
		return entry{Record: &witness.Record{Kind: witness.Section, Client: client, Asked: asked * ms, Begin: begin * ms, End: free * ms, Free: free * ms}}
	}
	first := section(1, 100, 200, 300)
	with := func(token, queued int64, e entry) entry {
		e.Token, e.Queued = token, queued
		return e
	}
	for name, test := range map[string]struct {
		sections []entry
		want     int
	}{
		"in order":                          {[]entry{first, section(2, 150, 300, 400), section(3, 160, 3000, 3100)}, 0},
		"by one that came soon after":       {[]entry{first, section(2, 1200, 1300, 1400), section(3, 160, 3000, 3100)}, 0},
		"by one that came long after":       {[]entry{first, section(2, 2900, 2950, 2960), section(3, 160, 3000, 3100)}, 1},
		"in the line behind the first":      {[]entry{section(3, 150, 200, 2800), section(2, 2900, 2950, 2960), section(3, 160, 3000, 3100)}, 0},
		"before the first in the line":      {[]entry{section(3, 500, 2000, 2800), section(2, 2900, 2950, 2960), section(3, 160, 3000, 3100)}, 1},
		"granted first, and told later":     {[]entry{with(8, 0, section(2, 2900, 2950, 3100)), with(7, 0, section(3, 160, 2951, 3100))}, 0},
		"granted first, and not told":       {[]entry{with(8, 0, section(2, 2100, 2150, 3100)), with(7, 0, section(3, 160, 2951, 3100))}, 1},
		"of one phase":                      {[]entry{with(7, 0, section(2, 2900, 2950, 3100)), with(7, 0, section(3, 160, 2951, 3100))}, 1},
		"by a hold that was downgraded":     {[]entry{with(6, -1, section(2, 2900, 2950, 2960)), with(7, 0, section(3, 160, 3000, 3100))}, 0},
		"behind one that was long ago over": {[]entry{section(3, 150, 200, 300), section(2, 2900, 2950, 2960), section(3, 160, 3000, 3100)}, 1},
	} {
		h := &History{entries: test.sections}
		require.Len(t, h.overtaken(plan.Object{Family: plan.Locks}), test.want, name)
	}
	h := &History{entries: []entry{section(3, 150, 200, 2800), section(2, 2900, 2950, 2960), section(3, 160, 3000, 3100)}}
	require.Len(t, h.overtaken(plan.Object{Family: plan.Fair}), 1, "a fairlock has no line")
}
