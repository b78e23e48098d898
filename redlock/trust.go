package redlock

import (
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lease"
)

// How long a hold can be trusted: as long as the leases of a majority of its parts, less what the clocks of the
// servers may differ by. A hold loses parts and takes them again, so no single part says when the hold must end.

// drift is what the clocks of the servers may differ by within a lease.
func drift(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// trust returns for how long part p counts at moment. It is 0 or less if the lease of p is over, or may be.
func trust(p *grant.Part, moment time.Time) time.Duration {
	left := p.LeftAt(moment)
	if left <= 0 {
		return left
	}
	return left - drift(p.Granted())
}

// ofMajority returns the duration that a majority of the parts reach at least, where of measures a part. Without a
// majority it returns 0. The caller holds the mutex.
func (q *quorum) ofMajority(of func(*grant.Part) time.Duration) time.Duration {
	all := make([]time.Duration, 0, 16)
	for _, part := range q.parts {
		if part != nil {
			all = append(all, of(part))
		}
	}
	if len(all) < q.engine.majority {
		return 0
	}
	slices.Sort(all)
	return all[len(all)-q.engine.majority]
}

// LeftAt returns how long the hold can still be trusted at moment.
func (q *quorum) LeftAt(moment time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.left(moment)
}

// left is LeftAt for a caller that holds the mutex.
func (q *quorum) left(moment time.Time) time.Duration {
	left := q.ofMajority(func(p *grant.Part) time.Duration { return trust(p, moment) })
	if !q.end.IsZero() {
		left = min(left, q.end.Sub(moment))
	}
	return left
}

// setEnd notes when the hold that begins must end: with the ends of a majority of its present parts. A part that the
// hold takes later has an end of its own, which is later. The caller holds the mutex.
func (q *quorum) setEnd() {
	now := time.Now()
	q.closed = q.countClosed()
	left := q.ofMajority(func(p *grant.Part) time.Duration {
		if p.End().IsZero() {
			return 0
		}
		return p.End().Sub(now)
	})
	if left > 0 {
		q.end = now.Add(left)
	}
}

func (q *quorum) Expire() error {
	q.mu.Lock()
	why := q.expiry()
	q.mu.Unlock()
	q.lose(why)
	return why
}

// expiry returns why the trust is over: the hold reached its end, or no majority is left without the clients that
// were closed, or leases were not renewed in time. Code that looks at the clock may call expiry before a part has
// reported its loss. The caller holds the mutex.
func (q *quorum) expiry() error {
	if !q.end.IsZero() && time.Until(q.end) <= drift(q.engine.servers[0].Lease())+lease.Margin {
		return lease.ErrEnded
	}
	now, closed, trusted := time.Now(), q.countClosed()-q.closed, 0
	for _, part := range q.parts {
		if part != nil && trust(part, now) > 0 {
			trusted++
		}
	}
	if closed > 0 && trusted+closed >= q.engine.majority {
		return fail.ErrClosed
	}
	return lease.ErrExpired
}

// countClosed returns how many parts were lost because their clients were closed. The caller holds the mutex.
func (q *quorum) countClosed() (n int) {
	for _, part := range q.parts {
		if part != nil && part.LeftAt(time.Now()) <= 0 && errors.Is(part.Expiry(), fail.ErrClosed) {
			n++
		}
	}
	return n
}

// partLost runs when a part is lost. Perhaps the majority is lost with it.
func (q *quorum) partLost(reason error) {
	q.mu.Lock()
	left := q.left(time.Now())
	if left > 0 && q.first != nil && !q.over { // the hold goes on, perhaps for less time than with that part
		q.closed = q.countClosed()
		q.tickBefore(left)
	}
	q.mu.Unlock()
	if left <= 0 {
		q.lose(reason)
	}
}
