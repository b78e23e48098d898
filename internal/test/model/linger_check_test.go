package model

// checkRefusal checks that nobody is refused a lock that its process was to release. A repeated attempt may
// have wanted two locks, one after the other: the answer of either counts.
func (w *world) checkRefusal(t id) {
	owed := w.tenure(t).linger.owed
	if owed == nobody || w.redis.owner != owed || w.owned(owed).dead || w.tenure(owed).loose || w.tenure(t).loose {
		return
	}
	w.violated(spurned, "t%d is refused, and t%d was parked when it was asked", t, owed)
}

// whenIdle checks what must be true when nothing will happen by itself but that a linger ends: nobody waits
// for that, unless a message was lost.
func (w *world) whenIdle() {
	for _, f := range []int{mute, kill, half, restart} {
		if w.faults[f] < w.allowed[f] {
			return
		}
	}
	r := &w.redis
	if r.owner == nobody || !w.lingersOn(r.owner) {
		return
	}
	for _, q := range r.queue[:r.queued] {
		if !w.owned(q).dead {
			w.violated(delayed, "t%d waits, and t%d lingers", q, r.owner)
		}
	}
}
