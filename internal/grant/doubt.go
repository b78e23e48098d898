package grant

import "strings"

// Doubt: what this process does when a reply says that Redis may have lost a tenure of this process.
//
// A lock's key may be deleted, or Redis may lose its data. Then another process can get the lock while this process
// passes it on, joins it, or lets it linger. None of these steps asks Redis. The next renewal finds the loss. Another
// reply may show the loss earlier, at no cost: an Inspect finds another holder, or a waiter of this process has to
// queue anew. From then on this process begins no hold before it has asked Redis. It releases a parked tenure. It
// renews a held tenure at once, and the reply says whether Redis has lost that tenure.

// Holding is what a process held before it asked Redis who holds the lock.
type Holding struct{ alone, shared *tenure }

// Holding returns the tenures of the name that this process holds, or has parked. Call Holding before you ask Redis.
func (q *Queue) Holding() (h Holding) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h.alone = q.alone.holder
	if q.shared != nil {
		h.shared = q.shared.holder
	}
	return h
}

// Against compares the holding with Redis's answer. owner is the exclusive owner, or empty. shares is how many owners
// hold together.
func (h Holding) Against(owner string, shares int64) {
	owner = strings.TrimSuffix(owner, ":write") // a write owner has this suffix
	if t := h.alone; t != nil && owner != t.waiter.Owner && (shares == 0 || t.excludes()) {
		t.doubt()
	}
	if t := h.shared; t != nil && shares == 0 {
		t.doubt()
	}
}

// doubt makes the client ask Redis whether the tenure is still there, before another turn begins in the tenure.
func (t *tenure) doubt() {
	t.queue.mu.Lock()
	t.handOffs.reserved = 0
	t.stopJoining()
	t.queue.mu.Unlock()
	if !t.leaveParked() {
		t.queue.At.Client.Keeper.Ask(&t.item)
	}
}

// excludes reports whether it is sure that no other owner holds together with the tenure.
func (t *tenure) excludes() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return !t.mayBeShared()
}

// doubtAll calls doubt for each tenure of the name that the process holds.
func (q *Queue) doubtAll() {
	h := q.Holding()
	for _, t := range []*tenure{h.alone, h.shared} {
		if t != nil {
			t.doubt()
		}
	}
}
