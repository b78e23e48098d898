package look

import (
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey"
)

// Pause is the pause of a name.
type Pause struct {
	By    Told       `json:"by"`
	Why   Told       `json:"why,omitempty"`
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until,omitempty"`
}

// addPause says whether it is paused.
func (r *Report) addPause(ctx context.Context, client *latchkey.Client) error {
	p, err := client.Paused(ctx, string(r.Name))
	if err != nil || p.Since.IsZero() {
		return err
	}
	r.Paused = &Pause{By: Told(p.By), Why: Told(p.Why), Since: p.Since}
	if !p.Until.IsZero() {
		r.Paused.Until = &p.Until
	}
	if len(r.Holders) == 0 && r.AsksForPauses() {
		r.State = "paused"
	}
	return nil
}

// AsksForPauses reports whether it is something that a pause holds up, as far as Redis knows.
func (r Report) AsksForPauses() bool {
	return r.Kind == KindFree || r.Kind == KindOnce || r.Kind == KindLeader
}

// Note is why it is held, or paused.
func (r Report) Note() Told {
	if note := r.First().Note; note != "" || r.Paused == nil {
		return note
	}
	return r.Paused.Why
}

// Said is a pause in a line.
func (p Pause) Said(now time.Time) string {
	line := fmt.Sprintf("paused %v ago by %s", now.Sub(p.Since).Round(time.Second), p.By)
	if p.Until != nil {
		line += fmt.Sprintf(", for %v more", p.Until.Sub(now).Round(time.Second))
	}
	if p.Why != "" {
		line += fmt.Sprintf(": %s", p.Why)
	}
	return line
}
