package look

import (
	"context"
	"fmt"
	"maps"
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

	there map[Told]string // by owner: whether its process hears

	at    time.Time // of the look
	since time.Time // the lease of this holder was renewed, as far as looks tell; or the first look at it
	left  float64   // of the lease then, in seconds
	seen  bool      // it was renewed while this looked
	most  float64   // that was seen to be left
}

// Explain looks at a name until its lease is renewed, or it has another holder, or for so long.
func (l *Looker) Explain(ctx context.Context, name string, most time.Duration) (e Explanation, err error) {
	if e, err = l.ExplainAgain(ctx, name, e); err != nil {
		return e, err
	}
	for first, began := e.First(), time.Now(); first.ends() && !e.seen && e.First().same(first) && time.Since(began) < most; {
		select {
		case <-time.After(min(200*time.Millisecond, most)):
		case <-ctx.Done():
			return e, ctx.Err()
		}
		if e, err = l.ExplainAgain(ctx, name, e); err != nil {
			return e, err
		}
	}
	return e, nil
}

// ExplainAgain looks once, and compares with what was seen before. The zero value is that nothing was.
func (l *Looker) ExplainAgain(ctx context.Context, name string, before Explanation) (e Explanation, err error) {
	err = answered(ctx, func(ctx context.Context) error {
		e.Report, err = l.Report(ctx, name)
		return err
	})
	if err != nil {
		return e, err
	}
	e.at = time.Now()
	e.compare(before)
	const many = 200 // who waits behind so many others is not asked for
	parties := slices.Concat(e.Holders[:min(many, len(e.Holders))], e.Waiters[:min(many, len(e.Waiters))])
	e.there, err = l.hear(ctx, parties)
	return e, err
}

// compare finds out whether the lease was renewed since the look before.
func (e *Explanation) compare(before Explanation) {
	p := e.First()
	if !p.ends() {
		return
	}
	if !p.same(before.First()) {
		e.since, e.left, e.most = e.at, *p.Remaining, *p.Remaining
		return
	}
	e.since, e.left, e.seen, e.most = before.since, before.left, before.seen, max(before.most, *p.Remaining)
	const rounding = 0.2 // s
	if *p.Remaining > e.left-e.at.Sub(e.since).Seconds()+rounding {
		e.since, e.left, e.seen = e.at, *p.Remaining, true
	}
}

// renews reports whether the lease is renewed in time, as each third of it is: half of what was seen is left.
func (e Explanation) renews() bool { return e.seen && *e.First().Remaining >= e.most/2 }

// Longest is what was seen to be left of the lease at most, in seconds: about as long as the lease is.
func (e Explanation) Longest() float64 { return e.most }

// same reports whether it is one hold.
func (p Party) same(other Party) bool {
	return p.Owner == other.Owner && p.Token == other.Token && p.ends() && other.ends()
}

// hear says of each owner whether its process is connected, as far as its inbox tells it.
func (l *Looker) hear(ctx context.Context, parties []Party) (there map[Told]string, err error) {
	there = map[Told]string{}
	if len(l.Plain.Nodes()) > 1 {
		return there, nil // each node knows its own listeners
	}
	of := map[string][]Told{}
	for _, p := range parties {
		if client, _, _ := strings.Cut(string(p.Owner), ":"); client == strings.ToUpper(client) { // Redisson has no inbox
			of[lua.Inbox(client)] = append(of[lua.Inbox(client)], p.Owner)
		}
	}
	if len(of) == 0 {
		return there, nil
	}
	err = answered(ctx, func(ctx context.Context) error {
		listen, err := l.Plain.Do(ctx, l.Plain.B().PubsubNumsub().Channel(slices.Sorted(maps.Keys(of))...).Build()).AsIntMap()
		for inbox, owners := range of {
			for _, owner := range owners {
				switch n, told := listen[inbox]; {
				case !told:
				case n == 0:
					there[owner] = absent
				default:
					there[owner] = "Its process is connected."
				}
			}
		}
		if lua.Forbidden(err) {
			return nil
		}
		return err
	})
	return there, err
}

// absent is said of a process that does not hear what it is told.
const absent = "Its process does not listen: it has ended, is cut off, or does without pub/sub."

// Absent reports whether the process of a party does not hear what it is told; false also if that is not known.
func (e Explanation) Absent(p Party) bool { return e.there[p.Owner] == absent }

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
	text := "It is held by " + p.Who(now) + e.More() + "."
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
	case e.renews():
		lines = append(lines, fmt.Sprintf("It renews its lease. %s is left.", p.Lease()))
	case !e.seen && e.at.Sub(e.since).Seconds() < e.most/3: // no renewal was due for sure
		lines = append(lines, fmt.Sprintf("%s of its lease is left.", p.Lease()))
	default:
		lines = append(lines, fmt.Sprintf("Its lease was not renewed in %v: %s of it is left.", e.at.Sub(e.since).Round(time.Second), p.Lease()))
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
	text := fmt.Sprintf("%d wait. The first is %s", e.Waiting, w.Who(now))
	if w.Permits > 0 {
		text += fmt.Sprintf(", for %d permits", w.Permits)
	}
	lines := []string{text + "."}
	if there := e.there[w.Owner]; there != "" {
		lines = append(lines, there)
	}
	deaf := 0
	for _, w := range e.Waiters[1:] {
		if e.Absent(w) {
			deaf++
		}
	}
	if deaf > 0 {
		lines = append(lines, fmt.Sprintf("Behind it %d do not listen.", deaf))
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
	case e.renews():
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
