package look

import (
	"fmt"
	"time"
)

// Sight is what a look has seen.
type Sight struct {
	At       time.Time `json:"at"`
	Complete bool      `json:"complete"` // all names were looked for; else clients have told these
	Rows     []Row     `json:"names"`
	Counted  bool      `json:"-"` // grants were, since the last look

	Scheduled []Report `json:"-"` // jobs and leads, also free ones
	Clients   []Client `json:"-"`
}

// Row is one name.
type Row struct {
	Report

	LongestWait float64  `json:"longest_wait"` // s; 0: less than a second, or not told
	Rate        *float64 `json:"hand_offs"`    // a second; nil: not counted

	Held time.Duration `json:"-"` // for how long the first holder has; 0: not told
	Wait time.Duration `json:"-"` // the longest; 0: not told
}

func newRow(r Report, now time.Time) Row {
	row := Row{Report: r}
	if since := r.First().Since; since != nil {
		row.Held = now.Sub(*since)
	}
	for _, p := range r.Waiters {
		if p.Since != nil {
			row.Wait = max(row.Wait, now.Sub(*p.Since))
		}
	}
	row.LongestWait = row.Wait.Seconds()
	return row
}

// HandOffs is how many there were a second; 0 also if they are not counted.
func (r Row) HandOffs() float64 {
	if r.Rate == nil {
		return 0
	}
	return *r.Rate
}

// Summary is all names in a line.
func (s *Sight) Summary() string {
	held, waiting, rate := 0, 0, 0.0
	for _, r := range s.Rows {
		if len(r.Holders) > 0 {
			held++
		}
		waiting += r.Waiting
		rate += r.HandOffs()
	}
	text := fmt.Sprintf("%d held, %d waiting", held, waiting)
	if s.Counted {
		text += fmt.Sprintf(", %.1f hand-offs a second", rate)
	}
	if !s.Complete {
		text += "; names are being looked for"
	}
	return text
}
