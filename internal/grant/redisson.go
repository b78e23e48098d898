package grant

import "time"

// Taking turns with processes of Redisson: how our waiters hear of Redisson's releases. What our releases do for
// waiters of Redisson is in the scripts: see shared/turns.lua of package lua.
//
// Processes of Redisson know no queue. So our waiters listen for releases, as waiters of Redisson do, and the oldest
// waiter of the process asks at once. It says how many releases of Redisson the client has heard since our last
// release: as many turns are ours then.

// keptBack is how long our waiters keep back after a release of ours has left something to Redisson: KEPT of
// shared/turns.lua.
const keptBack = 20 * time.Millisecond

// takesTurns reports whether the client takes turns with processes of Redisson, which may use the name too.
func (q *Queue) takesTurns() bool { return q.At.Client.Options.Redisson && q.At.Client.Inbox != nil }

// listenToRedisson makes the client hear of releases, as long as the inbox has users.
func (q *Queue) listenToRedisson() {
	i := &q.inbox
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.turns && i.users > 0 {
		i.turns = true
		q.openReleased()
	}
}

// releasesConfirmed runs when the client begins to hear of releases. The client may have missed a release before.
func (q *Queue) releasesConfirmed() {
	q.inbox.tell()
	if q.takesTurns() {
		q.waiters.Freed()
	}
}

// heardRelease takes a message about a release. In our messages a 0 stands before the number.
func (q *Queue) heardRelease(text string) {
	q.inbox.tell()
	switch {
	case !q.takesTurns():
	case len(text) > 1 && text[0] == '0':
		q.theirs.Store(0)
		q.waiters.LeaseEnds(keptBack)
	default:
		q.theirs.Add(1)
		q.waiters.Freed()
	}
}

// askSoon starts a timer, unless one runs. Each time it fires, the client asks Redis whether a process of Redisson
// waits for this shared tenure: a process of Redisson does not say that it waits. Without the question, goroutines of
// this process could join for ever. The caller holds the mutex.
func (t *tenure) askSoon() {
	if t.queue.takesTurns() && !t.watches {
		t.watches = true
		t.asks = t.queue.At.Client.AfterFunc(t.question(), func() { t.queue.At.Go(t.ask) })
	}
}

// asksForRedisson reports whether the client must still ask whether a process of Redisson waits. The caller holds the
// mutex.
func (t *tenure) asksForRedisson() bool {
	return t.queue.takesTurns() && t.shared && t.isOpen() && t.handOffs.contendedSince.IsZero()
}
