package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// report is what is known of a name.
type report struct {
	Name      identity.Name `json:"name"`
	Kind      kind          `json:"kind"`
	Capacity  int           `json:"capacity,omitempty"`  // of a semaphore
	Available int           `json:"available,omitempty"` // of its permits
	Shares    int           `json:"shares,omitempty"`    // how many read
	State     string        `json:"state,omitempty"`     // of what nobody holds, in words
	Holders   []party       `json:"holders"`
	Waiting   int           `json:"waiting"`
	Waiters   []party       `json:"waiters"`          // the first 1000 of those
	Forced    *party        `json:"forced,omitempty"` // who took the lock away last
	Paused    *paused       `json:"paused,omitempty"`
	Next      *time.Time    `json:"next,omitempty"`  // when the next tick of a job is due
	Runs      []jobRun      `json:"runs,omitempty"`  // of a job, the last one first
	Error     told          `json:"error,omitempty"` // why it cannot be said
}

// party is one that holds or waits.
type party struct {
	Owner     told       `json:"owner"`
	Mode      told       `json:"mode,omitempty"` // read, write, rest; empty: the whole lock, or permits
	Host      told       `json:"host,omitempty"`
	PID       int        `json:"pid,omitempty"`
	Program   told       `json:"program,omitempty"`
	Label     told       `json:"label,omitempty"`
	Version   told       `json:"version,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
	Note      told       `json:"note,omitempty"`
	Token     int64      `json:"token,omitempty"`
	Remaining *float64   `json:"remaining_seconds,omitempty"` // of the lease; -1: it never ends
	Permits   int        `json:"permits,omitempty"`
}

func newParty(who latchkey.Identity) party {
	p := party{
		Host: told(who.Host), PID: who.PID, Program: told(who.Program), Label: told(who.Label),
		Version: told(who.Version), Note: told(who.Note),
	}
	if !who.Since.IsZero() {
		p.Since = &who.Since
	}
	return p
}

func newHolder(h latchkey.Holder) party {
	p := newParty(h.Identity)
	p.Owner, p.Mode, p.Permits = told(h.Owner), told(h.Mode), h.Permits
	p.Token, p.Remaining = h.Token, seconds(h.Remaining)
	return p
}

// inspect finds out what a name is, and asks that.
func inspect(ctx context.Context, c *cli.Command, name string) (report, error) {
	l, err := newLooker(c)
	if err != nil {
		return report{}, err
	}
	defer l.close()
	return l.report(ctx, name)
}

// looker looks at names.
type looker struct {
	client *latchkey.Client
	plain  rueidis.Client
	prefix string
}

func newLooker(c *cli.Command) (*looker, error) {
	client, err := open(c, c.FullName())
	if err != nil {
		return nil, err
	}
	plain, err := openPlain(c)
	if err != nil {
		client.Close()
		return nil, err
	}
	return &looker{client: client, plain: plain, prefix: c.String("prefix")}, nil
}

func (l *looker) close() {
	l.client.Close()
	l.plain.Close()
}

// report finds out what a name is, and asks that.
func (l *looker) report(ctx context.Context, name string) (report, error) {
	r := report{Name: identity.Name(name), Holders: []party{}, Waiters: []party{}}
	is, pausable, err := kindOf(ctx, l.plain, l.prefix+name)
	if r.Kind = is; err != nil {
		return r, err
	}
	switch r.Kind {
	case kindLock, kindFree, kindLeader, kindOnce:
		err = r.addLock(ctx, l.client)
	case kindReadWrite:
		var lock *rwlock.Lock
		if lock, err = rwlock.New(l.client, name); err == nil {
			err = r.addState(ctx, lock.Write())
		}
	case kindSemaphore:
		var s *semaphore.Semaphore
		if s, err = semaphore.New(l.client, name); err == nil {
			err = r.addSemaphore(ctx, s)
		}
	case kindLatch:
		err = r.addLatch(ctx, l.client)
	case kindBarrier:
		err = r.addBarrier(ctx, l.client)
	}
	if err == nil && pausable {
		err = r.addPause(ctx, l.client)
	}
	return r, failed(err)
}

// addLock is for all that have a lock. What leads or runs has one that is its own.
func (r *report) addLock(ctx context.Context, client *latchkey.Client) error {
	lock, err := rlock.New(client, string(r.Name))
	if err == nil {
		err = r.addState(ctx, lock)
	}
	if err == nil && r.Kind == kindOnce {
		err = r.addJob(ctx, client)
	}
	if err != nil || r.Kind != kindOnce || len(r.Holders) > 0 {
		return err
	}
	o, err := once.New(client, string(r.Name))
	if err != nil {
		return err
	}
	done, err := o.Done(ctx)
	if done {
		r.State = "done"
	}
	return err
}

func (r *report) addLatch(ctx context.Context, client *latchkey.Client) error {
	l, err := countdown.New(client, string(r.Name))
	if err != nil {
		return err
	}
	s, err := l.Inspect(ctx)
	if r.State = s.Status.String(); s.Status == countdown.Shut {
		r.State += fmt.Sprintf(", %d to count", s.Count)
	}
	return err
}

func (r *report) addBarrier(ctx context.Context, client *latchkey.Client) error {
	const parties = 2 // that is for those who wait
	b, err := barrier.New(client, string(r.Name), parties)
	if err != nil {
		return err
	}
	s, err := b.Inspect(ctx)
	switch {
	case s.Broken:
		r.State = "broken"
	case s.Acting:
		r.State = "its action runs"
	case s.Parties == 0:
		r.State = "nobody waits"
	default:
		r.State = fmt.Sprintf("%d of %d have arrived", s.Waiting, s.Parties)
	}
	return err
}

func (r *report) addState(ctx context.Context, l *latchkey.Lock) error {
	s, err := l.Inspect(ctx)
	if err != nil {
		return err
	}
	if s.Holder.Owner != "" {
		r.Holders = append(r.Holders, newHolder(s.Holder))
	}
	r.Shares, r.Waiting = s.Readers, s.Waiting
	if !s.Forced.Since.IsZero() {
		p := newParty(s.Forced)
		r.Forced = &p
	}
	r.addWaiters(s.Waiters)
	return nil
}

func (r *report) addSemaphore(ctx context.Context, sem *semaphore.Semaphore) error {
	s, err := sem.Inspect(ctx)
	if err != nil {
		return err
	}
	r.Capacity, r.Available, r.Waiting = s.Capacity, s.Available, s.Waiting
	for _, h := range s.Holders {
		r.Holders = append(r.Holders, newHolder(h))
	}
	r.addWaiters(s.Waiters)
	return nil
}

func (r *report) addWaiters(all []latchkey.Waiter) {
	for _, w := range all {
		p := newParty(w.Identity)
		p.Owner, p.Mode, p.Permits = told(w.Owner), told(w.Mode), w.Permits
		r.Waiters = append(r.Waiters, p)
	}
}

// seconds is what is left of a lease.
func seconds(d time.Duration) *float64 {
	left := -1.0
	if d >= 0 {
		left = d.Round(100 * time.Millisecond).Seconds()
	}
	return &left
}

// lease is what is left of it, in words; empty when it is not known.
func (p party) lease() string {
	switch {
	case p.Remaining == nil:
		return ""
	case *p.Remaining < 0:
		return "never ends"
	}
	return (time.Duration(*p.Remaining*10) * 100 * time.Millisecond).String()
}
