// Package latchkeygocron lets gocron's schedulers in several processes share their jobs by latchkey. It has
// an [Elector], a [Locker], and tasks whose context ends when the lock is lost ([Task], [Elector.Task]).
//
//	locker, err := latchkeygocron.NewLocker(c, 30*time.Second) // jobs that run once a minute
//	...
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// gocron cannot tell a job that its lock was lost, and drops the error of Unlock. If a job must not run twice
// at a time, make it with [Task], and without a locker.
//
// All of these go by the clocks of the processes, as gocron does. A tick that no process reaches is left out,
// and a tick whose process dies is not repeated. Every of package once of latchkey has neither limit. It goes
// by the server's clock, and needs no scheduler.
package latchkeygocron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/rlock"
)

var (
	_ gocron.Locker  = (*Locker)(nil)
	_ gocron.Elector = (*Elector)(nil)
)

// Locker is for gocron.WithDistributedLocker and gocron.WithDistributedJobLocker. It is safe for concurrent
// use. The zero value is not usable: see [NewLocker].
type Locker struct {
	client  *latchkey.Client
	options []rlock.Option

	mu   sync.Mutex
	jobs map[string]job // by name
}

// job is one of gocron, known by its context.
type job struct {
	ctx  context.Context
	said bool // that another one has its name
}

// NewLocker returns a locker whose locks stay taken for minHold after they were acquired, also if the job
// takes no time. So a process whose clock is behind by less than minHold does not run the job again. Half of
// the shortest time between two runs is best: with all of it, a process whose clock is ahead would leave out
// its next run. minHold is more than 0, and 24 h at most.
//
// The options are as for package rlock. NewLocker does no I/O. It returns latchkey.ErrInvalid for a nil
// client, options out of range, and a client without pub/sub.
func NewLocker(c *latchkey.Client, minHold time.Duration, opts ...rlock.Option) (*Locker, error) {
	l := &Locker{
		client: c, options: append(append([]rlock.Option(nil), opts...), latchkey.WithMinHold(minHold)), jobs: map[string]job{},
	}
	if _, err := l.lock("any"); err != nil { // what is wrong is better known now than when the first job is due
		return nil, err
	}
	return l, nil
}

func (l *Locker) lock(name string) (*latchkey.Lock, error) {
	lock, err := rlock.New(l.client, name, l.options...)
	if err != nil {
		return nil, fmt.Errorf("latchkeygocron: no lock for a job: %w", err)
	}
	return lock, nil
}

// Lock makes one attempt to lock the name of a job. It returns latchkey.ErrNotAcquired if another process
// runs the job, or ran it less than minHold ago; otherwise the errors of latchkey.Lock.TryLock. With any
// error gocron leaves out this run of the job. The name names an rlock: jobs of different programs need
// different names, or clients with different key prefixes.
//
// A job without gocron.WithName has the name of its function. So jobs made of one function in a loop have one
// name, and would have one lock. For the second of them Lock returns latchkey.ErrInvalid, and says so once in
// slog.Default: give each job a name of its own.
//
// The Unlock of its result is as of *latchkey.Hold: latchkey.ErrLost says that the job may not have been
// alone. gocron drops that error.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	if !l.isOf(ctx, key) {
		return nil, fmt.Errorf("latchkeygocron: %w: two jobs have the name %q, give each one of its own: gocron.WithName", latchkey.ErrInvalid, key)
	}
	lock, err := l.lock(key)
	if err != nil {
		return nil, err
	}
	hold, err := lock.TryLock(ctx)
	if err != nil {
		return nil, err // not a nil *Hold in an interface
	}
	return hold, nil
}

// isOf reports whether the job with this context is the one that has the name. gocron gives each job a context of its own,
// which ends when the job is removed, or its scheduler stops.
func (l *Locker) isOf(ctx context.Context, key string) bool {
	if ctx.Done() == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.jobs[key]
	switch {
	case j.ctx == nil || j.ctx.Err() != nil:
		l.jobs[key] = job{ctx: ctx}
		return true
	case j.ctx == ctx:
		return true
	}
	if !j.said {
		slog.Error("latchkeygocron: two jobs have one name, and the second never runs: give each a gocron.WithName", "name", key)
		l.jobs[key] = job{j.ctx, true}
	}
	return false
}

// Task returns a function for gocron.NewTask that runs f under the lock. The context of f ends when the lock
// is lost, and with the job's context. If another process has the lock, f does not run, and the task returns
// nil. If f ran, the task returns f's error, with latchkey.ErrLost if f may not have been alone. Otherwise it
// returns why the lock was not acquired, which matches latchkey.ErrNotRun.
//
// Give the lock a latchkey.WithMinHold: see [NewLocker].
func Task(lock *latchkey.Lock, f func(context.Context, *latchkey.Hold) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ran := false
		err := lock.TryDo(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
			ran = true
			return f(ctx, hold)
		})
		if !ran && errors.Is(err, latchkey.ErrNotAcquired) {
			return nil
		}
		return err
	}
}

// ErrNotLeader says that this process does not lead. [Elector.IsLeader] returns it.
var ErrNotLeader = errors.New("latchkeygocron: not the leader")

// Elector is for gocron.WithDistributedElector: the process that leads runs all jobs. It is safe for
// concurrent use. The zero value is not usable: see [NewElector].
type Elector struct {
	candidate *leader.Candidate
	term      atomic.Pointer[term] // the last one, which may be over; nil: none yet
}

// term is one time of leadership. Tasks that run hold the lock for reading.
type term struct {
	leader.Term

	ctx   context.Context
	tasks sync.RWMutex
}

// NewElector returns an elector that leads when the candidate does: while [Elector.Run] runs.
func NewElector(candidate *leader.Candidate) *Elector { return &Elector{candidate: candidate} }

// Run campaigns until ctx ends, and returns the error of the candidate's Run. If a term ends for another
// reason than latchkey.ErrLost, as by Resign of the candidate, the lead is kept until all functions of
// [Elector.Task] have returned.
func (e *Elector) Run(ctx context.Context) error {
	return e.candidate.Run(ctx, func(ctx context.Context, now leader.Term) error {
		t := &term{Term: now, ctx: ctx}
		e.term.Store(t)
		<-ctx.Done()
		t.tasks.Lock() // for good: no other task begins in this term
		return ctx.Err()
	})
}

// IsLeader returns nil while this process leads, and otherwise [ErrNotLeader]. It does no I/O: it compares
// the clock with the end of the lease. So it is right at once after Redis or this process were away. If this
// process led before, the error also matches why that ended, as latchkey.ErrLost. It stops no job that runs
// already: see [Elector.Task].
func (e *Elector) IsLeader(context.Context) error {
	_, err := e.leads()
	return err
}

func (e *Elector) leads() (*term, error) {
	t := e.term.Load()
	switch {
	case t == nil:
		return nil, ErrNotLeader
	case t.ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotLeader, context.Cause(t.ctx))
	}
	return t, nil
}

// Task returns a function for gocron.NewTask that runs f while this process leads. The context of f ends with
// the leadership, and with the job's context; its Err compares the clock. The task returns what f returns, or
// [ErrNotLeader] if f did not run. f can give the token of the term to a store that refuses smaller ones.
func (e *Elector) Task(f func(context.Context, leader.Term) error) func(context.Context) error {
	return func(ctx context.Context) error {
		t, err := e.leads()
		if err != nil {
			return err
		}
		if !t.tasks.TryRLock() {
			return ErrNotLeader // the term has ended just now
		}
		defer t.tasks.RUnlock()
		both, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })()
		return f(taskContext{both, t.ctx}, t.Term)
	}
}

// taskContext is the context of a job that ends with the term.
type taskContext struct {
	context.Context

	term context.Context
}

// Err asks the term as well, which compares the clock.
func (c taskContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	return c.term.Err()
}
