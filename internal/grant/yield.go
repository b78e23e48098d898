package grant

import "time"

// Yielding: permits are passed on inside the process as long as nobody waits elsewhere, as far as the process
// knows.
//
// Its goroutines stand in a line, as with a budget. What tells the process of others: the reply to a request
// that is queued, a grant, and a message to the last in the queue when another process queues behind it. From
// then on nobody stands in line: all queue in Redis, each for itself, so that their places are among those of
// the others. And so nothing is passed on, as there is nobody to give it to. After a while one asks again
// whether others wait, while the rest stands in line. The budget bounds what happens before the process hears
// of others, or when a message is lost.
//
// A request for several permits is as one of others. It may fit later than those that came after it, so it
// must have its place in the queue.

// remembered is how long a process believes that others wait after it heard so. Each request that queues
// meanwhile, and finds others, tells it once more.
const remembered = 50 * time.Millisecond

// others is whether others wait for the permits of a name. The zero value says no. The mutex of the queue
// guards it.
type others struct{ heard time.Time } // zero: never

// wait reports whether others do, as far as is known.
func (o *others) wait() bool { return !o.heard.IsZero() && time.Since(o.heard) < remembered }

// othersWait is told that others wait for what the tenure has or wants. The goroutines in line go to the
// queue.
func (t *tenure) othersWait() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.othersWaitNow()
}

// othersWaitNow is othersWait with the mutex held.
func (t *tenure) othersWaitNow() {
	if t.terms.yields {
		t.queue.others.heard = time.Now()
		t.queue.alone.line.disband()
	}
}
