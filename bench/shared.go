package main

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// witness is memory that the processes of a round share, outside Redis. It sees who is inside, and judges exclusion.
type witness struct {
	memory   []byte
	inside   *atomic.Int64 // how many hold the lock now
	overlaps *atomic.Int64 // how often somebody else was inside
	last     *atomic.Int64 // process that held it last
	freed    *atomic.Int64 // when it began to unlock, in ns since the epoch
}

func openWitness(path string) (*witness, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the mapping stays
	if err := f.Truncate(4096); err != nil {
		return nil, err
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	word := func(n int) *atomic.Int64 { return (*atomic.Int64)(unsafe.Pointer(&m[64*n])) }
	return &witness{m, word(0), word(1), word(2), word(3)}, nil
}

func (w *witness) close() { _ = syscall.Munmap(w.memory) }

// enter is called with the lock held. It returns how long after another process began to unlock that is, 0 if it was this one.
func (w *witness) enter(process int64, now time.Time) (handoff time.Duration) {
	if w.inside.Add(1) != 1 {
		w.overlaps.Add(1)
	}
	if last := w.last.Load(); last != 0 && last != process {
		return time.Duration(now.UnixNano() - w.freed.Load())
	}
	return 0
}

// leave is called before the lock is released.
func (w *witness) leave(process int64) {
	w.last.Store(process)
	w.freed.Store(time.Now().UnixNano())
	w.inside.Add(-1)
}
