package once_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest/shared"
	"github.com/latchkey-go/latchkey/once"
)

// words is memory that all workers of a test share, outside Redis.
type words struct{ shared.Memory }

func openWords(path string, n int) words {
	m, err := shared.Open(path, 64*n)
	check(err)
	return words{m}
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	check(err)
	return n
}

// holds runs something once that never ends, until it is told to by a file. It says when it runs, and what
// became of it.
func holds(c *latchkey.Client, args []string) {
	o, err := once.New(c, "a")
	check(err)
	err = o.Do(context.Background(), func(_ context.Context, run *once.Run) error {
		fmt.Println("runs", run.Token(), run.Attempt())
		for {
			if _, err := os.Stat(args[0]); err == nil {
				return run.SetResult([]byte("stale"))
			}
			<-time.After(10 * time.Millisecond)
		}
	})
	fmt.Println("ended", errors.Is(err, once.ErrSuperseded), err)
	select {}
}

// processes are how many take part in a job.
const processes = 8

// diary is the store that a job writes to. It refuses tokens that are smaller than one it has seen, and a
// tick that it has.
type diary struct {
	words

	first    *atomic.Int64 // tick 0
	token    *atomic.Int64 // the greatest
	pid      *atomic.Int64 // who has run last
	stale    *atomic.Int64 // runs that were refused
	repeated *atomic.Int64 // runs of a tick that was there
	twice    *atomic.Int64 // those of them that said they were the first
	inside   *atomic.Int64 // who runs: process id
	overlaps *atomic.Int64
	offset   *atomic.Int64 // of the server's clock, in ns
	late     *atomic.Int64 // runs that were late by more than bound
	bound    *atomic.Int64 // ns
	latest   *atomic.Int64 // how late the latest was, in ns
	runs     *atomic.Int64
	before   *atomic.Int64 // runs before tick 0, or after the last
	lateAt   *atomic.Int64 // the last tick of those
	delays   *atomic.Int64 // times that it began to be so late
	jumped   *atomic.Int64 // when the clock was set forward last: what it jumped over was due then
}

const diaryWords = 20

func openDiary(path string, n int) *diary {
	w := openWords(path, diaryWords+n)
	return &diary{
		w, w.Word(0), w.Word(1), w.Word(2), w.Word(3), w.Word(4), w.Word(5), w.Word(6), w.Word(7), w.Word(8), w.Word(9), w.Word(10),
		w.Word(11), w.Word(12), w.Word(13), w.Word(14), w.Word(15), w.Word(16),
	}
}

// write is one run.
func (d *diary) write(ctx context.Context, run *once.Run, period time.Duration, n int, takes time.Duration) {
	d.runs.Add(1)
	at := run.Tick().UnixNano()
	due := at
	if offset := d.offset.Load(); offset > 0 {
		due = max(at-offset, d.jumped.Load())
	}
	lateness := time.Now().UnixNano() - due
	for most := d.latest.Load(); lateness > most && !d.latest.CompareAndSwap(most, lateness); {
		most = d.latest.Load()
	}
	if bound := d.bound.Load(); bound > 0 && lateness > bound && run.Attempt() == 1 {
		d.late.Add(1)
		if at-d.lateAt.Swap(at) > int64(time.Second) { // those behind it are late because it was
			d.delays.Add(1)
		}
	}
	pid := int64(os.Getpid())
	d.inside.Store(pid)
	d.pid.Store(pid)
	defer func() {
		if !d.inside.CompareAndSwap(pid, 0) && ctx.Err() == nil { // it trusts its lock still
			d.overlaps.Add(1)
		}
	}()
	if takes > 0 {
		<-time.After(takes)
	}
	for {
		last := d.token.Load()
		if run.Token() < last {
			d.stale.Add(1)
			return
		}
		if d.token.CompareAndSwap(last, run.Token()) {
			break
		}
	}
	i := (at - d.first.Load()) / int64(period)
	if i < 0 || i >= int64(n) {
		d.before.Add(1)
		return
	}
	if !d.Word(diaryWords+int(i)).CompareAndSwap(0, run.Token()) {
		d.repeated.Add(1)
		if run.Attempt() == 1 {
			d.twice.Add(1)
		}
	}
}

// ticks runs a job.
func ticks(c *latchkey.Client, args []string) {
	n, period, takes := atoi(args[1]), time.Duration(atoi(args[2]))*time.Millisecond, time.Duration(atoi(args[3]))*time.Millisecond
	d := openDiary(args[0], n)
	missed := map[string]once.Missed{"skip": once.Skip, "once": once.RunOnce, "all": once.RunAll}[args[4]]
	job, err := once.Every(c, "a", period, func(ctx context.Context, run *once.Run) error {
		d.write(ctx, run, period, n, takes)
		return nil
	}, once.WithMissed(missed))
	check(err)
	fmt.Println("ready")
	check(job.Run(context.Background()))
}
