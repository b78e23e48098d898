package redlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// Who asks next. Processes that ask at the same time take servers from one another, and none gets a majority.
// So waiters stand in the queue of one server, the coordinator, as waiters of any lock do. A release
// grants the coordinator's part to the head of that queue. The head asks the other servers, and all others
// sleep.
//
// The coordinator gives a hint, and no right: the process that has a majority has the lock. A process that is
// refused by the others gives back the coordinator's part. Otherwise two processes that queue on two servers,
// since they do not see the same ones, would wait for each other. No process relies on the coordinator: one
// that stands there for long tries without it from time to time, and when it hears of a release.

// patience is how long a process stands in the queue before it tries without the coordinator, beside
// patientTrips round trips. It is a random time up to that, and more than half of it, so that not all come at once.
// A hand-off takes two trips, and an attempt keeps servers from others for as long: where trips are long, all
// would be in each other's way. After each attempt in vain their part doubles, up to eight times, or a lease.
const patience, patientTrips = 400 * time.Millisecond, 4

func (c *contest) somePatience() time.Duration {
	trips := patientTrips << min(c.vain, 3) * time.Duration(c.engine.trip.Load())
	most := patience + min(trips, c.engine.servers[0].Lease())
	return most/2 + rand.N(most/2)
}

// jitter is how long a waiter pauses at most after it has heard of a release. By then all servers have been
// told, and not all waiters come at once.
const jitter = 2 * time.Millisecond

// contest is one call that waits for the lock.
type contest struct {
	engine   *engine
	attempt  grant.Attempt
	contends func() // called when others have the lock

	unfit   []bool        // by server: it is no coordinator, since it refuses
	heard   chan struct{} // of releases; nil until it listens
	deafen  func()        // stops that
	vain    int           // attempts without the coordinator
	hints   retry.Hints
	backoff retry.Backoff
	silence error // of the last attempt, if no majority answered it
}

// end ends what the call began.
func (c *contest) end() {
	if c.deafen != nil {
		c.deafen()
	}
}

// run tries until it has a majority. Where none has waited of late it asks one at once. Otherwise it stands
// in the queue of the coordinator before it asks the others.
func (c *contest) run() (*quorum, error) {
	w, waits := c.engine, c.attempt.Waits
	inTurn := c.isCrowded()
	for {
		var q *quorum
		var err error
		if inTurn {
			q, err = c.awaitTurn()
		} else {
			q, err = c.try(nil)
		}
		switch {
		case err == nil:
			return q, nil
		case waits.Err() != nil || final(err):
			return nil, w.failed(c.attempt, err)
		}
		c.contends()
		joins := c.coordinator() >= 0
		if inTurn || !joins { // else it has not stood in the queue yet
			if err := c.pause(); err != nil {
				return nil, err
			}
		}
		inTurn = joins
	}
}

// isCrowded reports whether the last call of this process that came to the coordinator had to wait there.
func (c *contest) isCrowded() bool {
	server := c.coordinator()
	return server >= 0 && !c.engine.astray.Load() && c.engine.queued[server].Queue.LastQueued()
}

// coordinator is the server in whose queue contenders stand: the first that is not known to be away; -1:
// none.
func (c *contest) coordinator() int {
	for _, i := range c.engine.order() {
		if c.engine.queued[i] != nil && !c.unfit[i] && !c.engine.isAway(i) {
			return i
		}
	}
	return -1
}

// try asks a majority now.
func (c *contest) try(skip *skipped) (*quorum, error) {
	q, err := c.engine.attempt(c.attempt.Waits, skip)
	return q, c.note(err)
}

// note remembers that no majority answered. An attempt that was too short to tell fails as the one before
// did, since no server has answered since.
func (c *contest) note(err error) error {
	if c.silence != nil && c.attempt.Waits.Err() != nil && errors.Is(err, errSilent) && !errors.Is(err, fail.ErrUnavailable) {
		return c.silence
	}
	if c.silence = nil; errors.Is(err, errSilent) {
		c.silence = err
	}
	return err
}

// awaitTurn waits until the coordinator grants its part, and asks the others. From time to time it tries
// without the coordinator. Where there is none any more it tries once.
func (c *contest) awaitTurn() (*quorum, error) {
	w, waits := c.engine, c.attempt.Waits
	server := c.coordinator()
	if server < 0 {
		return c.try(nil)
	}
	p := w.standAt(waits, server)
	if w.astray.Load() {
		c.listen()
	}
	next := time.NewTimer(c.somePatience())
	defer next.Stop()
	for {
		select {
		case got := <-p.came:
			p.settled()
			if got.err != nil {
				return nil, c.refused(server)
			}
			w.astray.Store(false)
			q, err := w.complete(waits, p.quorum, w.proposal(server, got.part), nil)
			return q, c.note(err)
		case <-p.queued:
			p.queued = nil
			c.contends()
			continue
		case <-next.C:
			c.listen()
		case <-c.heard:
			c.hesitate()
		case <-waits.Done():
			p.leave()
			return nil, c.unsaid()
		case <-w.Client().Closing.Done():
			p.leave()
			return nil, fail.ErrClosed
		}
		if c.coordinator() != server {
			p.leave()
			return nil, c.unsaid()
		}
		q, err := c.try(&skipped{server: server, busy: w.queued[server].InQueue() > 0})
		if err == nil || final(err) {
			p.leave()
			w.astray.Store(err == nil)
			return q, err
		}
		c.vain++
		next.Reset(c.somePatience())
	}
}

// unsaid is the error of a wait that ended before an attempt has said more.
func (c *contest) unsaid() error {
	if c.silence != nil {
		return c.silence
	}
	return fail.ErrNotAcquired
}

// refused is the error of a wait that the coordinator has ended.
func (c *contest) refused(server int) error {
	switch {
	case c.engine.Client().Closing.Err() != nil:
		return fail.ErrClosed
	case c.attempt.Waits.Err() == nil:
		c.unfit[server] = true
	}
	return c.unsaid()
}

// hesitate pauses after a release was heard. The attempt sees that the wait is over.
func (c *contest) hesitate() {
	d := rand.N(jitter)
	if !c.hints.Ask() {
		d = 5 * retry.HintPause // each asks all servers, and gives back what it got
	}
	_ = retry.Sleep(c.attempt.Waits, d)
}

// pause waits a while, or for a release.
func (c *contest) pause() error {
	w, waits := c.engine, c.attempt.Waits
	c.listen()
	t := time.NewTimer(c.backoff.Next())
	defer t.Stop()
	select {
	case <-c.heard:
		c.backoff.Reset()
		c.hesitate()
	case <-t.C:
	case <-waits.Done():
	case <-w.Client().Closing.Done():
		return fail.Wrap(w.name, fail.ErrClosed)
	}
	return nil
}

// listen has a value in the channel whenever somebody may have released the lock.
func (c *contest) listen() {
	if c.heard != nil {
		return
	}
	heard := make(chan struct{}, 1)
	stops := make([]func(), len(c.engine.servers))
	for i, p := range c.engine.servers {
		stops[i] = p.ListenForReleases(func() {
			select {
			case heard <- struct{}{}:
			default:
			}
		})
	}
	c.heard, c.deafen = heard, func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// place is one in the queue of the coordinator.
type place struct {
	quorum *quorum       // of which that part is the first
	queued chan struct{} // closed once others are before it
	came   chan answer
	leave  func() // gives it up, and gives back what was granted

	settled func() bool // has it keep nothing of the wait's context: it came
}

// standAt queues on a server.
func (w *engine) standAt(waits context.Context, server int) *place {
	// The part is held with this context, and often for longer than the caller waits. One that is derived from
	// the caller's would stay in that for as long as it lives, with each turn one more.
	ctx, stop := context.WithCancel(context.WithoutCancel(waits))
	p := &place{quorum: w.newQuorum(), queued: make(chan struct{}), came: make(chan answer, 1), settled: context.AfterFunc(waits, stop)}
	go func() {
		part, err := w.queued[server].AwaitPart(ctx, sync.OnceFunc(func() { close(p.queued) }), p.quorum.partLost)
		if err == nil {
			p.quorum.put(server, part)
		}
		p.came <- answer{server, part, err}
	}()
	p.leave = func() {
		p.settled()
		stop()
		go func() {
			if late := <-p.came; late.part != nil {
				_ = late.part.Release(context.Background(), grant.Quietly)
			}
		}()
	}
	return p
}
