package grant

import "strings"

// Doubt: what happens when a reply says that Redis may have lost what this process holds.
//
// A lock's key may be deleted, or Redis may lose its data. Then another process can have the lock while this one
// passes it on, joins it, or lets it linger. None of these steps asks Redis. The next renewal finds the loss. Another
// reply may show it earlier, at no cost: an Inspect finds another holder, or a waiter of this process has to queue
// anew. From then on this process begins no hold before it has asked Redis. It releases what is parked. It renews
// what is held at once, and the reply says whether that is lost.

// Holding is what a process held before it asked Redis who holds the lock.
type Holding struct{ alone, shared *tenure }

// Holding returns what this process holds of the name, or has parked. It is called before Redis is asked.
func (q *Queue) Holding() (h Holding) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h.alone = q.alone.holder
	if q.shared != nil {
		h.shared = q.shared.holder
	}
	return h
}

// Against compares the holding with the answer of Redis: its owner, if there is one, and how many hold together.
func (h Holding) Against(owner string, shares int64) {
	owner = strings.TrimSuffix(owner, ":write") // of a read-write lock
	if t := h.alone; t != nil && owner != t.waiter.Owner && (shares == 0 || t.excludes()) {
		t.doubt()
	}
	if t := h.shared; t != nil && shares == 0 {
		t.doubt()
	}
}

// doubt has Redis be asked whether the tenure is still there, before another turn begins in it.
func (t *tenure) doubt() {
	t.queue.mu.Lock()
	t.handOffs.reserved = 0
	t.stopJoining()
	t.queue.mu.Unlock()
	if !t.leaveParked() {
		t.queue.At.Client.Keeper.Ask(&t.item)
	}
}

// excludes reports whether the tenure is its holder's alone for sure.
func (t *tenure) excludes() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return !t.mayBeShared()
}

// doubtAll is doubt for all that the process holds of the name.
func (q *Queue) doubtAll() {
	h := q.Holding()
	for _, t := range []*tenure{h.alone, h.shared} {
		if t != nil {
			t.doubt()
		}
	}
}
