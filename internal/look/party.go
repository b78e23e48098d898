package look

import (
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey"
)

// Party is one that holds or waits.
type Party struct {
	Owner     Told       `json:"owner"`
	Mode      Told       `json:"mode,omitempty"` // read, write, rest; empty: the whole lock, or permits
	Host      Told       `json:"host,omitempty"`
	PID       int        `json:"pid,omitempty"`
	Program   Told       `json:"program,omitempty"`
	Label     Told       `json:"label,omitempty"`
	Version   Told       `json:"version,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
	Note      Told       `json:"note,omitempty"`
	Token     int64      `json:"token,omitempty"`
	Remaining *float64   `json:"remaining_seconds,omitempty"` // of the lease; -1: it never ends
	Permits   int        `json:"permits,omitempty"`
}

func newParty(who latchkey.Identity) Party {
	p := Party{
		Host: Told(who.Host), PID: who.PID, Program: Told(who.Program), Label: Told(who.Label),
		Version: Told(who.Version), Note: Told(who.Note),
	}
	if !who.Since.IsZero() {
		p.Since = &who.Since
	}
	return p
}

func newHolder(h latchkey.Holder) Party {
	p := newParty(h.Identity)
	p.Owner, p.Mode, p.Permits = Told(h.Owner), Told(h.Mode), h.Permits
	p.Token, p.Remaining = h.Token, seconds(h.Remaining)
	return p
}

// seconds is what is left of a lease.
func seconds(d time.Duration) *float64 {
	left := -1.0
	if d >= 0 {
		left = d.Round(100 * time.Millisecond).Seconds()
	}
	return &left
}

// Lease is what is left of its lease, in words; empty when it is not known.
func (p Party) Lease() string {
	switch {
	case p.Remaining == nil:
		return ""
	case *p.Remaining < 0:
		return "never ends"
	}
	return (time.Duration(*p.Remaining*10) * 100 * time.Millisecond).String()
}

// Age is for how long it has held or waited; empty if that is not told.
func (p Party) Age(now time.Time) string {
	if p.Since == nil {
		return ""
	}
	return now.Sub(*p.Since).Round(time.Second).String()
}

// TookAway says in a line who took the lock away last, when and why.
func (p Party) TookAway(now time.Time) string {
	line := fmt.Sprintf("taken away %v ago by process %d on %s (%s)", p.Age(now), p.PID, p.Host, p.Label)
	if p.Note != "" {
		line += fmt.Sprintf(": %s", p.Note)
	}
	return line
}

// ends reports whether it has a lease that ends unless it is renewed.
func (p Party) ends() bool {
	return p.Remaining != nil && *p.Remaining >= 0 && !p.rests()
}

// rests reports whether it has unlocked, and what it had stays taken for a while.
func (p Party) rests() bool { return latchkey.Mode(p.Mode) == latchkey.ModeRest }

// Who is a party in words.
func (p Party) Who(now time.Time) string {
	text := p.Owner.String()
	if p.PID > 0 {
		text = fmt.Sprintf("process %d on %s", p.PID, p.Host)
	}
	if p.Label != "" {
		text += fmt.Sprintf(" (%s)", p.Label)
	}
	if since := p.Age(now); since != "" {
		text += ", for " + since
	}
	if p.Note != "" {
		text += fmt.Sprintf(", to do %q", p.Note.String())
	}
	return text
}
