package look

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// Explanation is what is known of why a name does not move.
type Explanation struct {
	Report

	renewed bool            // while this looked
	looked  time.Duration   // for how long it did
	there   map[Told]string // by owner: whether its process hears
}

// Explain looks at a name until its lease is renewed, or it has another holder, or for so long.
func (l *Looker) Explain(ctx context.Context, name string, most time.Duration) (e Explanation, err error) {
	look := func() (r Report, err error) {
		err = answered(ctx, func(ctx context.Context) error {
			r, err = l.Report(ctx, name)
			return err
		})
		return r, err
	}
	if e.Report, err = look(); err != nil {
		return e, err
	}
	first, began := e.First(), time.Now()
	for first.ends() && time.Since(began) < most {
		select {
		case <-time.After(min(200*time.Millisecond, most)):
		case <-ctx.Done():
			return e, ctx.Err()
		}
		if e.Report, err = look(); err != nil {
			return e, err
		}
		e.looked = time.Since(began)
		now := e.First()
		if now.Owner != first.Owner || now.Token != first.Token {
			break
		}
		const rounding = 0.2 // s
		if e.renewed = *now.Remaining > *first.Remaining-e.looked.Seconds()+rounding; e.renewed {
			break
		}
	}
	e.there = map[Told]string{}
	const many = 20 // who waits behind so many others is not asked for
	for _, p := range slices.Concat(e.Holders[:min(many, len(e.Holders))], e.Waiters[:min(many, len(e.Waiters))]) {
		if e.there[p.Owner], err = l.hears(ctx, string(p.Owner)); err != nil {
			return e, err
		}
	}
	return e, nil
}

// hears says whether the process of an owner is connected, as far as its inbox tells it.
func (l *Looker) hears(ctx context.Context, owner string) (text string, err error) {
	client, _, _ := strings.Cut(owner, ":")
	if client != strings.ToUpper(client) { // Redisson has no inbox
		return "", nil
	}
	err = answered(ctx, func(ctx context.Context) error {
		if nodes := l.Plain.Nodes(); len(nodes) > 1 {
			return nil // each node knows its own listeners
		}
		m, err := l.Plain.Do(ctx, l.Plain.B().PubsubNumsub().Channel(lua.Inbox(client)).Build()).ToArray()
		if err != nil || len(m) < 2 {
			if lua.Forbidden(err) {
				return nil
			}
			return err
		}
		if n, err := m[1].AsInt64(); err != nil {
			return err
		} else if n == 0 {
			text = "Its process does not listen: it has ended, is cut off, or does without pub/sub."
		} else {
			text = "Its process is connected."
		}
		return nil
	})
	return text, err
}

// Lines say it, each thing in a line, and what a person may do. There may be nothing of that.
func (e Explanation) Lines(now time.Time) (said, advice []string) {
	said = []string{fmt.Sprintf("%s: %s", identity.Printable(string(e.Name)), e.Kind)}
	if e.State == "" {
		said = append(append(append(said, e.holding(now)...), e.waiting(now)...), e.ending())
		if e.Forced != nil {
			said = append(said, "It was "+e.Forced.TookAway(now)+".")
		}
	} else {
		said[0] += ", " + e.State
		if does := goesOn[e.Kind]; does != "" {
			said = append(said, does)
		}
	}
	return said, e.advice()
}

// goesOn is when those who wait go on, of what has no holders.
var goesOn = map[Kind]string{
	KindLatch:   "Its waiters go on when so many have counted. latchkey latch show says who has.",
	KindBarrier: "Its waiters go on when all have arrived.",
}

func (e Explanation) holding(now time.Time) []string {
	p := e.First()
	switch {
	case len(e.Holders) == 0 && e.Kind == KindSemaphore:
		return []string{fmt.Sprintf("%d permits are free. It has no holders with a lease: who has plain permits is not told.", e.Available)}
	case len(e.Holders) == 0:
		return []string{"It is free."}
	case p.rests():
		return []string{"It was unlocked, and WithMinHold keeps it taken."}
	}
	text := "It is held by " + p.who(now) + e.More() + "."
	switch {
	case e.Kind == KindSemaphore:
		text += fmt.Sprintf(" %d of %d permits are free.", e.Available, e.Capacity)
	case e.Shares > 1:
		text += fmt.Sprintf(" %d processes read together.", e.Shares)
	}
	lines := []string{text}
	if there := e.there[p.Owner]; there != "" {
		lines = append(lines, there)
	}
	switch {
	case !p.ends():
	case e.renewed:
		lines = append(lines, fmt.Sprintf("It renews its lease. %s is left.", p.Lease()))
	default:
		lines = append(lines, fmt.Sprintf("Its lease was not renewed in %v: %s of it is left.", e.looked.Round(time.Second), p.Lease()))
	}
	return lines
}

func (e Explanation) waiting(now time.Time) []string {
	switch {
	case e.Waiting == 0:
		return []string{"No process waits for it in Redis."}
	case len(e.Waiters) == 0:
		return []string{fmt.Sprintf("%d wait.", e.Waiting)}
	}
	w := e.Waiters[0]
	text := fmt.Sprintf("%d wait. The first is %s", e.Waiting, w.who(now))
	if w.Permits > 0 {
		text += fmt.Sprintf(", for %d permits", w.Permits)
	}
	lines := []string{text + "."}
	if there := e.there[w.Owner]; there != "" {
		lines = append(lines, there)
	}
	absent := 0
	for _, w := range e.Waiters[1:] {
		if strings.Contains(e.there[w.Owner], "does not listen") {
			absent++
		}
	}
	if absent > 0 {
		lines = append(lines, fmt.Sprintf("Behind it %d do not listen.", absent))
	}
	return lines
}

// ending says what ends first.
func (e Explanation) ending() string {
	p := e.First()
	switch {
	case e.Kind == KindSemaphore && e.Waiting > 0 && !p.ends():
		return "The first gets its permits when there are enough."
	case len(e.Holders) == 0 && e.Waiting > 0:
		return "The first that lives asks for it within two seconds."
	case len(e.Holders) == 0:
		return "There is nothing to wait for."
	case p.rests():
		return fmt.Sprintf("It is free in %s.", p.Lease())
	case !p.ends():
		return "Nothing ends by itself: it has no lease."
	case e.renewed:
		return "Nothing ends by itself while that process renews: the holder has to give it back."
	default:
		return fmt.Sprintf("Its lease ends in %s, unless it is renewed. Then the next one gets it.", p.Lease())
	}
}

// advice is what a person may do.
func (e Explanation) advice() (lines []string) {
	p := e.First()
	if len(e.Holders) == 0 || p.rests() {
		return nil
	}
	if p.PID > 0 {
		lines = append(lines, fmt.Sprintf("see what it does:     ps -fp %d, on %s", p.PID, p.Host))
	}
	if e.Waiting > 0 {
		lines = append(lines, "find a deadlock:      latchkey deadlocks")
	}
	if e.Kind != KindSemaphore {
		force := "latchkey unlock --force"
		if p.Token > 0 {
			force += fmt.Sprintf(" --token %d", p.Token)
		}
		lines = append(lines, fmt.Sprintf("take it away:         %s %s, when you know that the holder has ended", force, quoted(string(e.Name))))
	}
	return lines
}

var plainWord = regexp.MustCompile(`^[-_.:/@%+=,0-9A-Za-z]+$`)

// quoted is a name as a shell takes it, without what a terminal would obey.
func quoted(name string) string {
	if name = identity.Printable(name); plainWord.MatchString(name) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
