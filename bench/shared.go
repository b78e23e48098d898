package main

import (
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/test/redistest/shared"
)

// witness is memory that the processes of a round share, outside Redis. It sees who is inside, and judges
// exclusion.
type witness struct {
	memory   shared.Memory
	inside   *atomic.Int64 // how many hold the lock now
	overlaps *atomic.Int64 // how often somebody else was inside
	last     *atomic.Int64 // process that held it last
	freed    *atomic.Int64 // when it began to unlock, in ns since the epoch
	together *atomic.Int64 // at most so many were inside at a time
	writing  *atomic.Int64 // how many of those inside must be there alone
	unlocked *atomic.Int64 // process that was the last whose unlock is over
}

func openWitness(path string) (*witness, error) {
	m, err := shared.Open(path, 4096)
	if err != nil {
		return nil, err
	}
	return &witness{m, m.Word(0), m.Word(1), m.Word(2), m.Word(3), m.Word(4), m.Word(5), m.Word(6)}, nil
}

func (w *witness) close() { w.memory.Close() }

// enter is called with the lock held, which was asked for at asked. It returns how long after another process
// began to unlock that is; 0 if it was this one, or if nobody waited: then it took the lock whenever it came.
func (w *witness) enter(process int64, asked, now time.Time) (handoff time.Duration) {
	if w.inside.Add(1) != 1 {
		w.overlaps.Add(1)
	}
	freed := w.freed.Load()
	if last := w.last.Load(); last == 0 || last == process || asked.UnixNano() >= freed {
		return 0
	}
	return time.Duration(now.UnixNano() - freed)
}

// othersTurn reports whether a process must not ask yet.
func (w *witness) othersTurn(j job) bool {
	me := int64(j.Process)
	switch {
	case j.Alternate: // until the other has it
		return w.last.Load() == me && w.inside.Load() == 0
	case j.Turns: // until the other has had it; the first process begins
		last := w.unlocked.Load()
		return last == me || last == 0 && me != 1
	default:
		return false
	}
}

// leave is called before the lock is released.
func (w *witness) leave(process int64) {
	w.last.Store(process)
	w.freed.Store(time.Now().UnixNano())
	w.inside.Add(-1)
}

// enterBeside is called with a read lock held.
func (w *witness) enterBeside() {
	inside := w.inside.Add(1)
	if w.writing.Load() > 0 {
		w.overlaps.Add(1)
	}
	for most := w.together.Load(); inside > most && !w.together.CompareAndSwap(most, inside); most = w.together.Load() {
	}
}

func (w *witness) leaveBeside() { w.inside.Add(-1) }

// enterAlone is called with a write lock held.
func (w *witness) enterAlone() {
	w.writing.Add(1)
	if w.inside.Add(1) != 1 {
		w.overlaps.Add(1)
	}
}

func (w *witness) leaveAlone() {
	w.inside.Add(-1)
	w.writing.Add(-1)
}
