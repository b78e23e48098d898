// Package deadlock finds waits that wait for each other: circles over processes, by what their clients tell.
//
// A wait is a node when its caller holds something meanwhile (see [identity.Wait]). An edge leads from a wait
// to another one whose caller holds the lock that the first one is for. A circle of such edges never ends by
// itself: nobody in it gives back what it holds before its own wait is over. This is the wait-for graph of
// databases, searched from one node.
//
// What is told is up to a second old. So a circle is believed that is found twice, with a pause between that
// is longer: the waits of a circle that is real are still there, and a wait that was given up is not.
package deadlock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
)

// Wait is one that lasts while its caller holds something.
type Wait struct {
	identity.Wait

	Who identity.Party // without Since and Note, which are the wait's
}

// id tells waits apart.
type id struct {
	client, key string
	since       int64
}

func (w *Wait) id() id { return id{w.Who.Client, string(w.Key), w.Since} }

func byID(a, b Wait) int {
	return cmp.Or(cmp.Compare(a.Who.Client, b.Who.Client), cmp.Compare(a.Since, b.Since), cmp.Compare(a.Key, b.Key))
}

// Circle is waits of which each is for what the next one's caller holds, and the last one for what the
// first one's does.
type Circle []Wait

// The bounds of a search.
const (
	longest = 32
	most    = 1000
)

// Find returns a circle that begins with a wait; nil when there is none. next returns the waits during which
// somebody holds a key. It is called once for each key.
func Find(first Wait, next func(key string) []Wait) Circle {
	s := search{next: next, first: first.id(), seen: map[id]bool{first.id(): true}, of: map[string][]Wait{}}
	return s.from(Circle{first})
}

type search struct {
	next  func(key string) []Wait
	first id
	seen  map[id]bool
	of    map[string][]Wait // what next has returned
}

func (s *search) from(path Circle) Circle {
	last := path[len(path)-1]
	key := string(last.Key)
	following, asked := s.of[key]
	if !asked {
		following = s.next(key)
		s.of[key] = following
	}
	for _, w := range following {
		if w.id() == s.first {
			return path
		}
	}
	if len(path) == longest {
		return nil
	}
	for _, w := range following {
		if s.seen[w.id()] || len(s.seen) == most {
			continue
		}
		s.seen[w.id()] = true
		if circle := s.from(append(slices.Clone(path), w)); circle != nil {
			return circle
		}
	}
	return nil
}

// Same reports whether both are of the same waits.
func (c Circle) Same(other Circle) bool {
	return slices.EqualFunc(c.sorted(), other.sorted(), func(a, b Wait) bool { return a.id() == b.id() })
}

func (c Circle) sorted() Circle {
	return slices.SortedFunc(slices.Values(c), byID)
}

// Victim is the youngest of the waits that end by themselves when they are in a circle. It reports false when
// there is none.
func (c Circle) Victim() (victim Wait, found bool) {
	for _, w := range c.sorted() {
		if w.Checked && (!found || w.Since >= victim.Since) {
			victim, found = w, true
		}
	}
	return victim, found
}

// IsVictim reports whether w is the circle's.
func (c Circle) IsVictim(w Wait) bool {
	victim, found := c.Victim()
	return found && victim.id() == w.id()
}

// String is the circle as a chain. short shortens a key to the name that the user knows.
func (c Circle) String(short func(key string) string) string {
	links := make([]string, len(c))
	for i, w := range c {
		links[i] = fmt.Sprintf("%s holds %q and waits for %q since %s", who(w.Who), short(c.Held(i)), short(string(w.Key)), w.At().UTC().Format(time.RFC3339))
		if w.Note != "" {
			links[i] += fmt.Sprintf(" (%q)", w.Note)
		}
	}
	return strings.Join(links, "; ")
}

// Held is the key that the caller at i holds, and the one before it waits for.
func (c Circle) Held(i int) string { return string(c[(i+len(c)-1)%len(c)].Key) }

// At is since when the wait lasts.
func (w *Wait) At() time.Time { return time.UnixMicro(w.Since) }

// who is a process in few words.
func who(p identity.Party) string {
	if p.Host == "" {
		return p.Client
	}
	text := fmt.Sprintf("%s:%d", p.Host, p.PID)
	if p.Label != "" {
		text += " " + p.Label
	}
	return identity.Printable(text)
}

// Party is the inside of the root package's Identity.
type Party = identity.Party

// All returns the circles among these waits, each once.
func All(waits []Wait) (circles []Circle) {
	slices.SortFunc(waits, byID)
	holding := map[string][]Wait{}
	for _, w := range waits {
		for _, h := range w.Holds {
			holding[string(h.Key)] = append(holding[string(h.Key)], w)
		}
	}
	for _, w := range waits {
		circle := Find(w, func(key string) []Wait { return holding[key] })
		if circle != nil && !slices.ContainsFunc(circles, circle.Same) {
			circles = append(circles, circle)
		}
	}
	return circles
}
