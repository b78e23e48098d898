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

// Who asks next. Processes that ask at the same time take servers from one another, and none gets a majority. So
// waiters stand in the queue of one server, the coordinator, as waiters of any lock do. A release grants the
// coordinator's part to the head of that queue. The head asks the other servers, and the other waiters sleep.
//
// The coordinator's queue is a hint and gives no right: the process that has a majority has the lock. If the other
// servers refuse a process, it gives back the coordinator's part. Otherwise two processes that see different servers,
// and so queue on two coordinators, would wait for each other. No process relies on the coordinator: a process that
// stands in the queue for long tries without the coordinator, from time to time and after each release that the
// process hears of.

// patience and the time of patientTrips round trips are how long a process stands in the queue at most before it
// tries without the coordinator. The time is random, and at least half of this sum, so that the processes do not all
// try at once. The trips count because a hand-off takes two of them, and an attempt keeps servers from other
// processes for as long: if trips are long, all processes would be in each other's way. After each attempt in vain
// the time of the trips doubles, up to eight times, and to a lease at most.
const patience, patientTrips = 400 * time.Millisecond, 4

func (c *contest) somePatience() time.Duration {
	trips := patientTrips << min(c.vain, 3) * time.Duration(c.engine.trip.Load())
	most := patience + min(trips, c.engine.servers[0].Lease())
	return most/2 + rand.N(most/2)
}

// jitter is how long a waiter pauses at most after it has heard of a release. In that time the release reaches all
// servers. The pause is random, so that the waiters do not all ask at once.
const jitter = 2 * time.Millisecond

// contest is one call that waits for the lock.
type contest struct {
	engine   *engine
	attempt  grant.Attempt
	contends func() // called when others have the lock

	unfit   []bool        // by server: it has refused, so it is no coordinator
	heard   chan struct{} // has a value after a release; nil until listen runs
	deafen  func()        // stops listening
	vain    int           // failed attempts without the coordinator
	hints   retry.Hints
	backoff retry.Backoff
	silence error // error of the last attempt, if no majority answered
}

// end stops listening for releases.
func (c *contest) end() {
	if c.deafen != nil {
		c.deafen()
	}
}

// run tries until it has a majority. If the last call of this process did not have to wait, run asks a majority at
// once. Otherwise run stands in the queue of the coordinator before it asks the other servers.
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
		if inTurn || !joins { // else the next round waits in the queue
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

// coordinator returns the server in whose queue contenders stand: the first fit server that is not known to be away.
// It returns -1 if no server is left.
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

// note remembers the error of an attempt that no majority answered. If an attempt was too short to tell, it fails
// with the error of the attempt before: no server has answered since then.
func (c *contest) note(err error) error {
	if c.silence != nil && c.attempt.Waits.Err() != nil && errors.Is(err, errSilent) && !errors.Is(err, fail.ErrUnavailable) {
		return c.silence
	}
	if c.silence = nil; errors.Is(err, errSilent) {
		c.silence = err
	}
	return err
}

// awaitTurn waits until the coordinator grants its part of the lock, and then asks the other servers for theirs. From
// time to time, and after each release that it hears of, it asks all servers but the coordinator. If no server can be the
// coordinator any more, awaitTurn asks all servers once.
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

// unsaid returns the error of a wait that ended between attempts: c.silence, else ErrNotAcquired.
func (c *contest) unsaid() error {
	if c.silence != nil {
		return c.silence
	}
	return fail.ErrNotAcquired
}

// refused returns the error of a wait that server has ended. If the call still waits, server is not its coordinator
// any more.
func (c *contest) refused(server int) error {
	switch {
	case c.engine.Client().Closing.Err() != nil:
		return fail.ErrClosed
	case c.attempt.Waits.Err() == nil:
		c.unfit[server] = true
	}
	return c.unsaid()
}

// hesitate pauses after the contest has heard of a release. If the wait ends during the pause, the next attempt sees
// that.
func (c *contest) hesitate() {
	d := rand.N(jitter)
	if !c.hints.Ask() {
		d = 5 * retry.HintPause // each attempt asks all servers, and gives back what it got
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

// listen makes c.heard receive a value whenever a holder may have released the lock.
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

// place is a process's place in the queue of the coordinator.
type place struct {
	quorum *quorum       // its first part is the coordinator's
	queued chan struct{} // closed once others have the coordinator's part
	came   chan answer
	leave  func() // gives the place up, and gives back what was granted

	settled func() bool // once the part has come: detaches it from the wait's context
}

// standAt queues on a server.
func (w *engine) standAt(waits context.Context, server int) *place {
	// The part is held with ctx, often for longer than the caller waits. A context that is derived from waits would
	// stay registered in waits for as long as the part lives: one more context with each turn.
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
