package main

import (
	"maps"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Round is what one round of a contender came to. Times are in µs.
type Round struct {
	Done         int64   // acquisitions, or what else the scenario counts
	Seconds      float64 // it took
	Rate         float64 // of Done, per second
	P50, P99     float64 // of the waits that ended
	Longest      float64 // wait, those that had not ended included
	HandoffP50   float64 // from an unlock to the lock in another process; 0: there were none
	Commands     float64 // that Redis was sent for each Done
	CommandRate  float64 // per second
	RedisTime    float64 // that Redis spent executing them, for each Done
	NetBytes     float64 // to and from Redis, for each Done
	ClientCPU    float64 // cores
	RedisCPU     float64
	Allocs       float64 // for each Done
	Bytes        float64 // allocated
	Fairness     float64 // what the luckiest process has done, over the unluckiest; 0: there is one
	Overlaps     int64   // somebody else was inside
	Together     int64   // at most so many readers were inside
	WriteP50     float64 // as P50, P99 and Longest, which are those of readers then
	WriteP99     float64
	LongestWrite float64 // of a writer
	Extra        map[string]float64
}

func perDone(n float64, done int64) float64 { return n / float64(max(done, 1)) }

// summary puts together what the processes of a round have seen.
func summary(samples []sample) Round {
	r := Round{Extra: map[string]float64{}}
	waits, handoffs, writes := histogram(), histogram(), histogram()
	var took time.Duration
	var allocs, bytes float64
	var shares []int64
	for _, s := range samples {
		r.Done += s.Done
		took = max(took, s.Took)
		r.ClientCPU += s.CPU.Seconds()
		allocs, bytes = allocs+float64(s.Allocs), bytes+float64(s.Bytes)
		shares = append(shares, s.Done)
		r.Longest = max(r.Longest, float64(s.Longest.Microseconds()))
		if s.Waits != nil {
			waits.Merge(hdrhistogram.Import(s.Waits))
		}
		r.LongestWrite = max(r.LongestWrite, float64(s.LongestWrite.Microseconds()))
		if s.WriteWaits != nil {
			writes.Merge(hdrhistogram.Import(s.WriteWaits))
		}
		if s.Handoffs != nil {
			handoffs.Merge(hdrhistogram.Import(s.Handoffs))
		}
		for name, value := range s.Extra {
			r.Extra[name] += value
		}
	}
	r.Seconds = took.Seconds()
	r.Rate = float64(r.Done) / r.Seconds
	r.ClientCPU /= r.Seconds
	r.P50, r.P99 = float64(waits.ValueAtQuantile(50)), float64(waits.ValueAtQuantile(99))
	r.WriteP50, r.WriteP99 = float64(writes.ValueAtQuantile(50)), float64(writes.ValueAtQuantile(99))
	if waits.TotalCount() > 0 {
		r.Extra["mean wait µs"] = waits.Mean()
	}
	if handoffs.TotalCount() > 0 {
		r.HandoffP50 = float64(handoffs.ValueAtQuantile(50))
	}
	r.Allocs, r.Bytes = perDone(allocs, r.Done), perDone(bytes, r.Done)
	if len(samples) > 1 {
		r.Fairness = float64(slices.Max(shares)) / float64(max(slices.Min(shares), 1))
	}
	return r
}

// The shares of the processes with long sections, where every other process has one.
const (
	longHolds = "share of the holds of the long"
	longTime  = "share of the time of the long"
)

// shareOut notes those shares.
func (r *Round) shareOut(samples []sample, section, long time.Duration) {
	var holds [2]float64
	for i, s := range samples {
		holds[i%2] += float64(s.Done)
	}
	inside := holds[0]*section.Seconds() + holds[1]*long.Seconds()
	if inside > 0 {
		r.Extra[longHolds], r.Extra[longTime] = holds[1]/(holds[0]+holds[1]), holds[1]*long.Seconds()/inside
	}
}

// Row is one contender in one scenario.
type Row struct {
	Scenario  string
	Title     string
	Series    string `json:",omitempty"`
	X         int    `json:",omitempty"`
	Contender string
	Error     string `json:",omitempty"` // why there is no result
	Rounds    []Round
}

// Results are those of a run, with what is needed to judge them.
type Results struct {
	When     string
	Machine  string
	Redis    string
	Go       string
	Command  string
	Versions map[string]string
	Rows     []Row

	Instructions *Instructions   `json:",omitempty"` // of a run of their own, which has a date of its own
	OnOthers     []*Instructions `json:",omitempty"` // the same on other servers, the last run of each version
}

// median is that of a figure over the rounds.
func (r *Row) median(of func(Round) float64) float64 {
	if len(r.Rounds) == 0 {
		return 0
	}
	var all []float64
	for _, round := range r.Rounds {
		all = append(all, of(round))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// spread is how far the rounds are apart, as a share of the median.
func (r *Row) spread(of func(Round) float64) float64 {
	m := r.median(of)
	if m == 0 {
		return 0
	}
	var all []float64
	for _, round := range r.Rounds {
		all = append(all, of(round))
	}
	return (slices.Max(all) - slices.Min(all)) / m
}

func rate(r Round) float64 { return r.Rate }

// extra is one of the further figures.
func extra(name string) func(Round) float64 { return func(r Round) float64 { return r.Extra[name] } }

// joins has the rows of a run of some scenarios stand in place of those that were recorded before, beside the
// others, if all ran in the same place.
func (r *Results) joins(before *Results) {
	if r.Machine != before.Machine || r.Redis != before.Redis || r.Go != before.Go || !maps.Equal(r.Versions, before.Versions) {
		return
	}
	rows := slices.Clone(before.Rows)
	for len(r.Rows) > 0 {
		first := r.Rows[0]
		same := func(row Row) bool { return row.Scenario == first.Scenario && row.X == first.X }
		n := slices.IndexFunc(r.Rows, func(row Row) bool { return !same(row) })
		if n < 0 {
			n = len(r.Rows)
		}
		at := slices.IndexFunc(rows, same)
		rows = slices.DeleteFunc(rows, same)
		if at < 0 {
			at = len(rows)
		}
		rows, r.Rows = slices.Insert(rows, at, r.Rows[:n]...), r.Rows[n:]
	}
	r.Rows, r.Command = rows, before.Command+"; "+r.Command
}

// rows are those of a scenario, in the order in which they ran.
func (r *Results) rows(name string) (rows []*Row) {
	for i := range r.Rows {
		if r.Rows[i].Scenario == name {
			rows = append(rows, &r.Rows[i])
		}
	}
	return rows
}

// names are those of the scenarios, in their order.
func (r *Results) names() (names []string) {
	for _, row := range r.Rows {
		if !slices.Contains(names, row.Scenario) {
			names = append(names, row.Scenario)
		}
	}
	return names
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
