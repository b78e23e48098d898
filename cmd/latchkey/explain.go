package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "say in words why a name does not move", ArgsUsage: "NAME",
		Description: "Says who holds NAME and whether that process still renews its lease, who waits and whether it is there, what ends first, and\n" +
			"what you can do. To see a renewal it looks until one comes, for --watch at most: it comes in each third of a lease.",
		Flags: connection(
			&cli.DurationFlag{Name: "watch", Usage: "look for this long at most whether the lease is renewed", Value: 4 * time.Second, Validator: notNegative},
		),
		Action: func(ctx context.Context, c *cli.Command) error {
			name, err := onlyName(c)
			if err != nil {
				return err
			}
			l, err := newLooker(c)
			if err != nil {
				return err
			}
			defer l.close()
			e, err := l.explain(ctx, name, c.Duration("watch"))
			switch {
			case err != nil:
				return failed(err)
			case e.Kind == kindOther:
				return exit(statusForeign, "%q is something else in Redis", name)
			}
			return e.print(c.Root().Writer, time.Now())
		},
	}
}

// explanation is what is known of why a name does not move.
type explanation struct {
	report

	renewed bool            // while this looked
	looked  time.Duration   // for how long it did
	there   map[told]string // by owner: whether its process hears
}

// explain looks at a name until its lease is renewed, or it has another holder, or for so long.
func (l *looker) explain(ctx context.Context, name string, most time.Duration) (e explanation, err error) {
	look := func() (r report, err error) {
		err = answered(ctx, func(ctx context.Context) error {
			r, err = l.report(ctx, name)
			return err
		})
		return r, err
	}
	if e.report, err = look(); err != nil {
		return e, err
	}
	first, began := e.first(), time.Now()
	for first.ends() && time.Since(began) < most {
		select {
		case <-time.After(min(200*time.Millisecond, most)):
		case <-ctx.Done():
			return e, ctx.Err()
		}
		if e.report, err = look(); err != nil {
			return e, err
		}
		e.looked = time.Since(began)
		now := e.first()
		if now.Owner != first.Owner || now.Token != first.Token {
			break
		}
		const rounding = 0.2 // s
		if e.renewed = *now.Remaining > *first.Remaining-e.looked.Seconds()+rounding; e.renewed {
			break
		}
	}
	e.there = map[told]string{}
	const many = 20 // who waits behind so many others is not asked for
	for _, p := range slices.Concat(e.Holders[:min(many, len(e.Holders))], e.Waiters[:min(many, len(e.Waiters))]) {
		if e.there[p.Owner], err = l.hears(ctx, string(p.Owner)); err != nil {
			return e, err
		}
	}
	return e, nil
}

// ends reports whether it has a lease that ends unless it is renewed.
func (p party) ends() bool {
	return p.Remaining != nil && *p.Remaining >= 0 && !p.rests()
}

// rests reports whether it has unlocked, and what it had stays taken for a while.
func (p party) rests() bool { return latchkey.Mode(p.Mode) == latchkey.ModeRest }

// hears says whether the process of an owner is connected, as far as its inbox tells it.
func (l *looker) hears(ctx context.Context, owner string) (text string, err error) {
	client, _, _ := strings.Cut(owner, ":")
	if client != strings.ToUpper(client) { // Redisson has no inbox
		return "", nil
	}
	err = answered(ctx, func(ctx context.Context) error {
		if nodes := l.plain.Nodes(); len(nodes) > 1 {
			return nil // each node knows its own listeners
		}
		m, err := l.plain.Do(ctx, l.plain.B().PubsubNumsub().Channel(lua.Inbox(client)).Build()).ToArray()
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

// print says it, each thing in a line.
func (e explanation) print(out io.Writer, now time.Time) error {
	lines := []string{fmt.Sprintf("%s: %s", plainText(string(e.Name)), e.Kind)}
	if e.State == "" {
		lines = append(append(append(lines, e.holding(now)...), e.waiting(now)...), e.ending())
		if e.Forced != nil {
			lines = append(lines, "It was "+e.Forced.tookAway(now)+".")
		}
	} else {
		lines[0] += ", " + e.State
		if does := goesOn[e.Kind]; does != "" {
			lines = append(lines, does)
		}
	}
	if advice := e.advice(); len(advice) > 0 {
		lines = append(append(lines, "You can"), advice...)
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// goesOn is when those who wait go on, of what has no holders.
var goesOn = map[kind]string{
	kindLatch:   "Its waiters go on when so many have counted. latchkey latch show says who has.",
	kindBarrier: "Its waiters go on when all have arrived.",
}

// who is a party in words.
func (p party) who(now time.Time) string {
	text := p.Owner.String()
	if p.PID > 0 {
		text = fmt.Sprintf("process %d on %s", p.PID, p.Host)
	}
	if p.Label != "" {
		text += fmt.Sprintf(" (%s)", p.Label)
	}
	if since := p.age(now); since != "" {
		text += ", for " + since
	}
	if p.Note != "" {
		text += fmt.Sprintf(", to do %q", p.Note.String())
	}
	return text
}

func (e explanation) holding(now time.Time) []string {
	p := e.first()
	switch {
	case len(e.Holders) == 0 && e.Kind == kindSemaphore:
		return []string{fmt.Sprintf("%d permits are free. It has no holders with a lease: who has plain permits is not told.", e.Available)}
	case len(e.Holders) == 0:
		return []string{"It is free."}
	case p.rests():
		return []string{"It was unlocked, and WithMinHold keeps it taken."}
	}
	text := "It is held by " + p.who(now) + more(len(e.Holders)) + "."
	switch {
	case e.Kind == kindSemaphore:
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
		lines = append(lines, fmt.Sprintf("It renews its lease. %s is left.", p.lease()))
	default:
		lines = append(lines, fmt.Sprintf("Its lease was not renewed in %v: %s of it is left.", e.looked.Round(time.Second), p.lease()))
	}
	return lines
}

func (e explanation) waiting(now time.Time) []string {
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
func (e explanation) ending() string {
	p := e.first()
	switch {
	case e.Kind == kindSemaphore && e.Waiting > 0 && !p.ends():
		return "The first gets its permits when there are enough."
	case len(e.Holders) == 0 && e.Waiting > 0:
		return "The first that lives asks for it within two seconds."
	case len(e.Holders) == 0:
		return "There is nothing to wait for."
	case p.rests():
		return fmt.Sprintf("It is free in %s.", p.lease())
	case !p.ends():
		return "Nothing ends by itself: it has no lease."
	case e.renewed:
		return "Nothing ends by itself while that process renews: the holder has to give it back."
	default:
		return fmt.Sprintf("Its lease ends in %s, unless it is renewed. Then the next one gets it.", p.lease())
	}
}

// advice is what a person may do.
func (e explanation) advice() (lines []string) {
	p := e.first()
	if len(e.Holders) == 0 || p.rests() {
		return nil
	}
	if p.PID > 0 {
		lines = append(lines, fmt.Sprintf("  see what it does:     ps -fp %d, on %s", p.PID, p.Host))
	}
	if e.Waiting > 0 {
		lines = append(lines, "  find a deadlock:      latchkey deadlocks")
	}
	if e.Kind != kindSemaphore {
		force := "latchkey unlock --force"
		if p.Token > 0 {
			force += fmt.Sprintf(" --token %d", p.Token)
		}
		lines = append(lines, fmt.Sprintf("  take it away:         %s %s, when you know that the holder has ended", force, quoted(string(e.Name))))
	}
	return lines
}

var plainWord = regexp.MustCompile(`^[-_.:/@%+=,0-9A-Za-z]+$`)

// quoted is a name as a shell takes it, without what a terminal would obey.
func quoted(name string) string {
	if name = plainText(name); plainWord.MatchString(name) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
