package grant

import "time"

// Taking turns with processes of Redisson: how waiters of ours hear of their releases. What a release of
// ours does for them is in the scripts: see shared/turns.lua of package lua.
//
// Those processes know no queue. So waiters of ours listen for what is released, as theirs do, and the oldest
// one of the process asks at once. It says how many releases of theirs were heard since the last one of ours,
// for so many turns are ours then.

// keptBack is how long waiters of ours keep back when a release of ours has left something to Redisson: KEPT
// of shared/turns.lua.
const keptBack = 20 * time.Millisecond

// takesTurns reports whether the client takes turns with processes of Redisson, which may use the name too.
func (q *Queue) takesTurns() bool { return q.At.Client.Options.Redisson && q.At.Client.Inbox != nil }

// listenToRedisson has the client hear of releases, as long as somebody uses the name.
func (q *Queue) listenToRedisson() {
	i := &q.inbox
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.turns && i.users > 0 {
		i.turns = true
		q.openReleased()
	}
}

// releasesConfirmed is called when the client hears of releases: one may have been missed before.
func (q *Queue) releasesConfirmed() {
	q.inbox.tell()
	if q.takesTurns() {
		q.waiters.Freed()
	}
}

// heardRelease takes a message about a release. In a message of ours a 0 stands before the number.
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

// askSoon starts a timer, unless one runs. Each time the client asks Redis whether a process of Redisson
// waits for this shared tenure: such a process does not say that it waits. Without the question, goroutines
// of this process could join for ever. The mutex is held.
func (t *tenure) askSoon() {
	if t.queue.takesTurns() && !t.watches {
		t.watches = true
		t.asks = t.queue.At.Client.AfterFunc(t.question(), func() { t.queue.At.Go(t.ask) })
	}
}

// asksForRedisson reports whether that is still to be asked. The mutex is held.
func (t *tenure) asksForRedisson() bool {
	return t.queue.takesTurns() && t.shared && t.isOpen() && t.handOffs.contendedSince.IsZero()
}
