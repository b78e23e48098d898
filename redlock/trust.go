package redlock

import (
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lease"
)

// What a hold can be trusted for: the leases of a majority of its parts, less what the clocks of the servers
// may differ. Parts are lost and taken again while it lasts, so that no part says when the hold must end.

// drift is what the clocks of the servers may differ by within a lease.
func drift(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// trust is for how long a part counts; 0 or less when its lease is over, or may be.
func trust(p *grant.Part, moment time.Time) time.Duration {
	left := p.LeftAt(moment)
	if left <= 0 {
		return left
	}
	return left - drift(p.Granted())
}

// ofMajority is what a majority of the parts have at least; 0 without a majority. The mutex is held.
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

// LeftAt is until the trust of a majority ends.
func (q *quorum) LeftAt(moment time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.left(moment)
}

// left is LeftAt with the mutex held.
func (q *quorum) left(moment time.Time) time.Duration {
	left := q.ofMajority(func(p *grant.Part) time.Duration { return trust(p, moment) })
	if !q.end.IsZero() {
		left = min(left, q.end.Sub(moment))
	}
	return left
}

// setEnd notes when the hold ends that begins: with a majority of the parts that it has now. One that is
// taken later has an end of its own, which is later. The mutex is held.
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

// expiry is the reason of a loss when the trust is over: the hold went up to its end, or clients were closed
// without which there is no majority, or leases were not renewed in time. Code that looks at the clock may
// ask before a part has told. The mutex is held.
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

// countClosed is how many parts were lost because their clients were closed. The mutex is held.
func (q *quorum) countClosed() (n int) {
	for _, part := range q.parts {
		if part != nil && part.LeftAt(time.Now()) <= 0 && errors.Is(part.Expiry(), fail.ErrClosed) {
			n++
		}
	}
	return n
}

// partLost is told that a part was lost: perhaps the majority was lost with it.
func (q *quorum) partLost(reason error) {
	q.mu.Lock()
	left := q.left(time.Now())
	if left > 0 && q.first != nil && !q.over { // it goes on, and perhaps not for as long as with that part
		q.closed = q.countClosed()
		q.tickBefore(left)
	}
	q.mu.Unlock()
	if left <= 0 {
		q.lose(reason)
	}
}
