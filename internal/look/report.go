package look

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// Report is what is known of a name.
type Report struct {
	Name      identity.Name `json:"name"`
	Kind      Kind          `json:"kind"`
	Capacity  int           `json:"capacity,omitempty"`  // of a semaphore
	Available int           `json:"available,omitempty"` // of its permits
	Shares    int           `json:"shares,omitempty"`    // how many read
	State     string        `json:"state,omitempty"`     // of what nobody holds, in words
	Holders   []Party       `json:"holders"`
	Waiting   int           `json:"waiting"`
	Waiters   []Party       `json:"waiters"`          // the first 1000 of those
	Forced    *Party        `json:"forced,omitempty"` // who took the lock away last
	Paused    *Pause        `json:"paused,omitempty"`
	Next      *time.Time    `json:"next,omitempty"`  // when the next tick of a job is due
	Runs      []Run         `json:"runs,omitempty"`  // of a job, the last one first
	Error     Told          `json:"error,omitempty"` // why it cannot be said
}

// Report finds out what a name is, and asks that.
func (l *Looker) Report(ctx context.Context, name string) (Report, error) {
	r := Report{Name: identity.Name(name), Holders: []Party{}, Waiters: []Party{}}
	is, pausable, err := KindOf(ctx, l.Plain, l.Prefix+name)
	if r.Kind = is; err != nil {
		return r, err
	}
	switch r.Kind {
	case KindLock, KindFree, KindLeader, KindOnce:
		err = r.addLock(ctx, l.Client)
	case KindReadWrite:
		var lock *rwlock.Lock
		if lock, err = rwlock.New(l.Client, name); err == nil {
			err = r.addState(ctx, lock.Write())
		}
	case KindSemaphore:
		var s *semaphore.Semaphore
		if s, err = semaphore.New(l.Client, name); err == nil {
			err = r.addSemaphore(ctx, s)
		}
	case KindLatch:
		err = r.addLatch(ctx, l.Client)
	case KindBarrier:
		err = r.addBarrier(ctx, l.Client)
	}
	if err == nil && pausable {
		err = r.addPause(ctx, l.Client)
	}
	return r, err
}

// addLock is for all that have a lock. What leads or runs has one that is its own.
func (r *Report) addLock(ctx context.Context, client *latchkey.Client) error {
	lock, err := rlock.New(client, string(r.Name))
	if err == nil {
		err = r.addState(ctx, lock)
	}
	if err == nil && r.Kind == KindOnce {
		err = r.addJob(ctx, client)
	}
	if err != nil || r.Kind != KindOnce || len(r.Holders) > 0 {
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

func (r *Report) addLatch(ctx context.Context, client *latchkey.Client) error {
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

func (r *Report) addBarrier(ctx context.Context, client *latchkey.Client) error {
	// How many there are is for those who wait.
	const parties = 2
	b, err := barrier.New(client, string(r.Name), parties) //nolint:contextcheck // what it begins outlasts the call
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

func (r *Report) addState(ctx context.Context, l *latchkey.Lock) error {
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

func (r *Report) addSemaphore(ctx context.Context, sem *semaphore.Semaphore) error {
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

func (r *Report) addWaiters(all []latchkey.Waiter) {
	for _, w := range all {
		p := newParty(w.Identity)
		p.Owner, p.Mode, p.Permits = Told(w.Owner), Told(w.Mode), w.Permits
		r.Waiters = append(r.Waiters, p)
	}
}

// Free reports that nobody has a use for it now.
func (r Report) Free() bool {
	return r.Error == "" && len(r.Holders) == 0 && r.Waiting == 0 && slices.Contains([]string{"", "done", "open", "not set", "nobody waits"}, r.State)
}

// First is who holds it, or nobody.
func (r Report) First() Party {
	if len(r.Holders) == 0 {
		return Party{}
	}
	return r.Holders[0]
}

// More says that there are further holders than the first; empty if there are none.
func (r Report) More() string {
	if len(r.Holders) < 2 {
		return ""
	}
	return fmt.Sprintf(" and %d more", len(r.Holders)-1)
}
