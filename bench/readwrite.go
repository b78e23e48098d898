package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest/baseline"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
)

// halves are those of a read-write lock. They are told which goroutine it is, from 1.
type halves struct {
	read, write func(ctx context.Context, g int) (Unlock, error)
	closed      func()
}

// readwrite has goroutines read, and write one time in so many.
func readwrite(j job) (func(context.Context, *sample) error, func(), error) {
	h, err := halvesOf(j)
	if err != nil {
		return nil, nil, err
	}
	w, err := openWitness(j.Memory)
	if err != nil {
		return nil, nil, err
	}
	for _, half := range []func(context.Context, int) (Unlock, error){h.write, h.read} { // the server learns the scripts
		unlock, err := half(context.Background(), 1)
		if err == nil {
			err = unlock()
		}
		if err != nil {
			return nil, nil, err
		}
	}
	run := func(ctx context.Context, s *sample) error {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var failed error
		all := newVisitor(j, w)
		for g := range j.Goroutines {
			wg.Go(func() {
				v := newVisitor(j, w)
				var err error
				for ctx.Err() == nil && err == nil {
					err = v.visit(ctx, h, 1+g)
				}
				mu.Lock()
				defer mu.Unlock()
				all.merge(v)
				if err != nil && ctx.Err() == nil {
					failed = err
				}
			})
		}
		wg.Wait()
		s.Done = all.reads.done + all.writes.done
		s.Waits, s.Longest = all.reads.waits.Export(), all.reads.longest
		s.WriteWaits, s.LongestWrite = all.writes.waits.Export(), all.writes.longest
		s.Extra = map[string]float64{"reads": float64(all.reads.done), "writes": float64(all.writes.done)}
		return failed
	}
	return run, func() { h.closed(); w.close() }, nil
}

// visitor is one goroutine, with what it has seen.
type visitor struct {
	section       time.Duration
	every         int
	measured      *atomic.Bool
	witness       *witness
	reads, writes side
}

// side is what was seen of one half.
type side struct {
	done    int64
	waits   *hdrhistogram.Histogram
	longest time.Duration
}

func newVisitor(j job, w *witness) *visitor {
	return &visitor{
		section: j.Section, every: j.WriteEvery, measured: j.measured, witness: w,
		reads: side{waits: histogram()}, writes: side{waits: histogram()},
	}
}

func (v *visitor) merge(other *visitor) {
	v.reads.merge(&other.reads)
	v.writes.merge(&other.writes)
}

func (s *side) merge(other *side) {
	s.done += other.done
	s.waits.Merge(other.waits)
	s.longest = max(s.longest, other.longest)
}

// visit reads or writes once.
func (v *visitor) visit(ctx context.Context, h halves, g int) error {
	half, side, enter, leave := h.read, &v.reads, v.witness.enterBeside, v.witness.leaveBeside
	if v.every > 0 && rand.N(v.every) == 0 {
		half, side, enter, leave = h.write, &v.writes, v.witness.enterAlone, v.witness.leaveAlone
	}
	asked := time.Now()
	unlock, err := half(ctx, g)
	waited := time.Since(asked)
	counts := v.measured.Load()
	if counts || err != nil { // or the round is over, and this wait is not
		side.longest = max(side.longest, waited)
	}
	if err != nil {
		return err
	}
	enter()
	if v.section > 0 {
		<-time.After(v.section)
	}
	leave()
	err = unlock()
	if counts {
		side.done++
		record(side.waits, waited)
	}
	return err
}

func halvesOf(j job) (h halves, err error) {
	if j.Variant == "redisson" {
		l, err := baseline.NewRWLock(j.Addr, "theirs", lease)
		if err != nil {
			return h, err
		}
		return halves{
			read: func(ctx context.Context, g int) (Unlock, error) {
				return func() error { return l.UnlockRead(context.Background(), g) }, l.Read(ctx, g)
			},
			write: func(ctx context.Context, g int) (Unlock, error) {
				return func() error { return l.UnlockWrite(context.Background(), g) }, l.Write(ctx, g)
			},
			closed: l.Close,
		}, nil
	}
	c, err := openLatchkey(j.Addr, j.options...)
	if err != nil {
		return h, err
	}
	h.closed = func() { _ = c.Close() }
	if j.Variant == "rlock" {
		l, err := rlock.New(c, "ours")
		if err != nil {
			return h, err
		}
		h.read, h.write = halfOf(l), halfOf(l)
		return h, nil
	}
	l, err := rwlock.New(c, "ours")
	if err != nil {
		return h, err
	}
	h.read, h.write = halfOf(l.Read()), halfOf(l.Write())
	return h, nil
}

func halfOf(l *latchkey.Lock) func(context.Context, int) (Unlock, error) {
	return func(ctx context.Context, _ int) (Unlock, error) {
		hold, err := l.Lock(ctx)
		if err != nil {
			return nil, err
		}
		return func() error { return hold.Unlock(context.Background()) }, nil
	}
}
