package grant

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Being wanted: how a holder hears that others wait for what it has.
//
// A process sees its own waiters as they come. Redis tells the process of other waiters: a script marks the owner,
// and from then on a client that finds the lock taken sends the owner a message. The message may be lost, and some
// waiters leave no trace that causes a message. So the client repeats the script, which also says whether waiters can
// be seen in Redis.

// question is the pause between two runs of the script; redissonAsks, for a shared tenure beside processes of
// Redisson.
const (
	question     = 2 * time.Second
	redissonAsks = 100 * time.Millisecond
)

func (t *tenure) question() time.Duration {
	if t.queue.takesTurns() && t.shared {
		return redissonAsks
	}
	return question
}

// wanted has the functions to call when others wait for what a turn holds. The zero value has none.
type wanted struct {
	tell     []func()      // called once each, with the mutex held
	isWanted bool          // others wait
	came     chan struct{} // closed when others wait; nil until Wanted is called
}

// Wanted implements [hold.Backing], as does WhenWanted.
func (u *turn) Wanted() <-chan struct{} {
	u.tenure.queue.mu.Lock()
	defer u.tenure.queue.mu.Unlock()
	w := &u.extra().wanted
	if w.came == nil {
		w.came = make(chan struct{})
		u.whenWanted(func() { close(w.came) })
	}
	return w.came
}

func (u *turn) WhenWanted(f func()) {
	u.tenure.queue.mu.Lock()
	defer u.tenure.queue.mu.Unlock()
	u.whenWanted(f)
}

// whenWanted is WhenWanted for a caller that holds the mutex.
func (u *turn) whenWanted(f func()) {
	t, q, w := u.tenure, u.tenure.queue, &u.extra().wanted
	switch {
	case u.last == nil || !t.owns(): // the turn is over
	case w.isWanted, !t.handOffs.contendedSince.IsZero(), !t.shared && q.waiters.Callers.Load() > 0:
		w.isWanted = true
		f()
	default:
		if len(w.tell) == 0 {
			q.watched.Add(1)
			q.enter() // the process must hear of others that wait
		}
		w.tell = append(w.tell, f)
		t.watch()
	}
}

// tellWanted tells all turns of the tenure that others wait. The caller holds the mutex.
func (t *tenure) tellWanted() {
	for u := t.turn; u != nil; u = u.next {
		if u.extras == nil {
			continue
		}
		u.extras.wanted.isWanted = true
		for _, f := range u.extras.wanted.tell {
			f()
		}
		u.stopWatching()
	}
}

// stopWatching ends what WhenWanted began. The caller holds the mutex, and the turn has extras.
func (u *turn) stopWatching() {
	if len(u.extras.wanted.tell) > 0 {
		u.extras.wanted.tell = nil
		u.tenure.queue.watched.Add(-1)
		u.tenure.queue.exit()
	}
}

// isWatched reports whether the tenure needs to hear that others wait. The caller holds the mutex.
func (t *tenure) isWatched() bool {
	if t.asksForRedisson() {
		return true
	}
	for u := t.turn; u != nil; u = u.next {
		if u.extras != nil && len(u.extras.wanted.tell) > 0 {
			return true
		}
	}
	return false
}

// comes tells the holders that a goroutine of this process wants what they hold, and may have to wait. A reader does
// not wait for readers.
func (q *Queue) comes(shared bool) {
	if q.watched.Load() == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, half := range []*half{&q.alone, q.shared} {
		if half != nil && half.holder != nil && (!shared || !half.holder.shared) {
			half.holder.tellWanted()
		}
	}
}

// watch makes the client ask Redis, now and from time to time. The caller holds the mutex.
func (t *tenure) watch() {
	if t.watches {
		return
	}
	t.watches = true
	t.queue.At.Go(t.ask)
}

// ask asks Redis whether others wait, and makes others that come later tell the owner.
func (t *tenure) ask() {
	q := t.queue
	if q.At.Client.Inbox != nil && !q.Listening() {
		q.awaitInbox(context.Background())
	}
	sent := time.Now()
	owns, others, err := q.kind.Watcher(q).Watch(session.WithoutDeadline(q.At.Client.Stopped), t.waiter.Owner, t.partOf == nil)
	switch class := lua.Classify(err); {
	case err == nil && !owns:
		t.doubt()
	case err != nil && (class == lua.NoAnswer || class == lua.Refused):
		q.At.Failed(err, sent)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if others && t.owns() {
		t.contendNow()
	}
	if t.watches = t.owns() && t.isWatched(); t.watches {
		t.asks = q.At.Client.AfterFunc(t.question(), func() { q.At.Go(t.ask) })
	}
}
