package identity

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Mode is documented by the root package.
type Mode string

// The modes.
const (
	Reads     Mode = "read"
	Writes    Mode = "write"
	Rests     Mode = "rest"
	Lingers   Mode = "linger"
	MayLinger Mode = "may linger"
)

// The ends of an owner id that say in which mode the owner has the lock.
const (
	writesEnd = ":write"
	restsEnd  = ":rest"
)

// ModeOf splits an owner id as it stands in a lock: the id, and the mode that its end tells. If the end tells none, the
// mode is otherwise.
func ModeOf(field string, otherwise Mode) (owner string, mode Mode) {
	owner, mode = strings.TrimSuffix(field, writesEnd), otherwise
	if owner != field {
		mode = Writes
	}
	if rests := strings.TrimSuffix(owner, restsEnd); rests != owner {
		return rests, Rests
	}
	return owner, mode
}

// Holder is the inside of the root package's Holder.
type Holder struct {
	Party
	Owner     string
	Mine      bool
	Mode      Mode
	Permits   int
	Token     int64
	Remaining time.Duration
}

// Waiter is the inside of the root package's Waiter.
type Waiter struct {
	Party
	Owner   string
	Mine    bool
	Mode    Mode
	Permits int
}

// String says in words who it is: the label, the host and the process; of a client that tells nothing the id alone.
// The text is printable.
func (p Party) String() string {
	switch {
	case p.PID == 0 && p.Client == "":
		return "an unknown client"
	case p.PID == 0:
		return Printable("client " + Clip(p.Client, MaxLabel+RandomLength))
	}
	label := p.Label
	if label == "" {
		label = p.Program
	}
	return Printable(fmt.Sprintf("%s on %s (pid %d)", label, p.Host, p.PID))
}

// Attribute is one word of what is known of a party, for a log.
type Attribute struct {
	Key   string
	Value any
}

// About returns what a log gets about a party: only what is known, in texts that are printable.
func (p Party) About() (about []Attribute) {
	words := []struct{ key, value string }{{"label", p.Label}, {"host", p.Host}, {"pid", strconv.Itoa(p.PID)}, {"client", p.Client}, {"note", p.Note}}
	for _, word := range words {
		if word.value != "" && word.value != "0" {
			about = append(about, Attribute{word.key, Printable(word.value)})
		}
	}
	if !p.Since.IsZero() {
		about = append(about, Attribute{"since", p.Since})
	}
	return about
}

// HeldBy says in words who has a lock, and for how long as of now.
func (h Holder) HeldBy(now time.Time) string {
	text := "held by " + h.String()
	if h.Mode == Rests {
		text = "kept by WithMinHold of " + h.String()
	}
	if lasts := now.Sub(h.Since); !h.Since.IsZero() && lasts >= 0 {
		text += " for " + lasts.Round(time.Second).String()
	}
	return text
}
