// Package traffic has what a worker process does: random programs that use the public API alone, and that write down
// with a witness what they are granted.
package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// worker is one process of an episode.
type worker struct {
	plan.Order
	words   witness.Words
	witness *witness.Witness
	clients [6]atomic.Pointer[client]
	numbers atomic.Int64
	log     *os.File
	logger  *slog.Logger // of the clients
	mute    sync.Mutex

	busy     []plan.Object // those that bursts use, as often as they are to
	spinning sync.WaitGroup
}

// Work does what the environment orders, if it orders anything: then it does not return.
func Work() {
	text := os.Getenv(plan.OrderVariable)
	if text == "" {
		return
	}
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString(0) // returns when the harness is gone
		os.Exit(3)
	}()
	w := &worker{}
	must(json.Unmarshal([]byte(text), &w.Order))
	w.run()
	os.Exit(0)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (w *worker) run() {
	w.words = latchkey.Must(witness.OpenWords(filepath.Join(w.Dir, "words")))
	w.witness = latchkey.Must(witness.Open(witness.Path(w.Dir, w.Serial)))
	w.log = latchkey.Must(os.OpenFile(plan.LogPath(w.Dir, w.Serial), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))
	told := latchkey.Must(os.OpenFile(plan.LogPath(w.Dir, w.Serial)+"key", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))
	w.logger = slog.New(slog.NewTextHandler(told, nil))
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(context.Background())
	var watching, working sync.WaitGroup
	watching.Go(func() { w.watch(ctx) })
	stopping, stop := context.WithCancel(ctx) // ends when the workers are to end
	watching.Go(func() {
		for w.words.Stop().Load() == 0 && ctx.Err() == nil {
			<-time.After(5 * time.Millisecond)
		}
		stop()
	})
	for n := range w.clients {
		w.reopen(n)
	}
	routine := uint64(0)
	begin := func(f func(ctx context.Context, rng *rand.Rand)) {
		rng := plan.RngOf(w.Seed, w.Episode, w.Serial, routine)
		routine++
		working.Go(func() {
			for w.words.Stop().Load() == 0 && !w.witness.Full() {
				f(stopping, rng)
			}
		})
	}
	for _, o := range w.Objects { // else a short program may set none, and its waiters would look forgotten
		if o.Changes && o.Family != plan.Counting {
			working.Go(func() {
				rng := plan.RngOf(w.Seed, w.Episode, w.Serial, 1<<32+uint64(o.Index))
				if c := w.any(rng); c != nil {
					w.setOnce(rng, c, o)
				}
			})
		}
	}
	for range w.Routines {
		begin(func(_ context.Context, rng *rand.Rand) { w.program(context.Background(), rng, 0, nil) })
	}
	for _, o := range w.Objects {
		switch {
		case o.Family == plan.Latch && !o.Quiet:
			for range 2 {
				begin(func(ctx context.Context, rng *rand.Rand) { w.useLatch(ctx, rng, o) })
			}
		case o.Family == plan.Barrier:
			if w.Worker < o.Capacity {
				begin(func(ctx context.Context, rng *rand.Rand) { w.useBarrier(ctx, rng, o) })
			}
		case o.Runs():
			for n := range w.runners(o) {
				begin(func(ctx context.Context, rng *rand.Rand) { w.useRuns(ctx, rng, o, n) })
			}
		}
	}
	w.busy = busyOf(w.Objects)
	for range w.Bursts {
		begin(w.burst)
	}
	w.beginQuietly(begin)
	begin(w.disturb)
	begin(w.holdLong)
	working.Wait()
	w.shut(ctx)
	cancel()
	stop()
	watching.Wait()
	w.spinning.Wait()
	if err := goleak.Find(append(redistest.Lingering, before)...); err != nil {
		w.violation("left behind", "goroutines of worker %d: %v", w.Serial, err)
	}
	w.words.Finished(w.Worker).Store(1)
}

// shut closes the clients as a service does that ends well.
func (w *worker) shut(ctx context.Context) {
	var closing sync.WaitGroup
	for n := range w.clients {
		closing.Go(func() {
			c := w.clients[n].Load()
			if c == nil {
				return
			}
			limited, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if err := c.Shutdown(limited); err != nil && w.Calm() {
				w.violation("shutdown", "client %d of worker %d: %v", c.number, w.Serial, err)
			}
		})
	}
	closing.Wait()
}

// watch notes for how long the process was not run.
func (w *worker) watch(ctx context.Context) {
	stall := w.words.Stall(w.Worker)
	for last := time.Now(); ctx.Err() == nil; {
		<-time.After(2 * time.Millisecond)
		for range 3 {
			if w.words.Starve().Load() > 0 { // as goroutines do that compute
				w.spinning.Go(func() {
					for began := time.Now(); time.Since(began) < 5*time.Millisecond; {
					}
				})
			}
		}
		if d := time.Since(last).Nanoseconds(); d > stall.Load() {
			stall.Store(d)
		}
		last = time.Now()
	}
}

// violation tells the harness what is wrong. It is one line of a file, which outlives the process.
func (w *worker) violation(kind, format string, values ...any) {
	w.mute.Lock()
	defer w.mute.Unlock()
	text := strings.ReplaceAll(fmt.Sprintf(format, values...), "\n", " | ")
	_, _ = fmt.Fprintf(w.log, "%s\t%s\n", kind, text) // nobody is left to tell
}

// disturb is what a goroutine does that disturbs the others now and then: it closes clients, takes locks
// away, and changes capacities.
func (w *worker) disturb(ctx context.Context, rng *rand.Rand) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(time.Duration(rng.IntN(40)) * time.Millisecond):
	}
	o := w.Objects[rng.IntN(len(w.Objects))]
	switch {
	case w.Closes && rng.IntN(10) == 0:
		w.replace(rng)
	case o.Taken && rng.IntN(3) == 0:
		w.take(rng, o)
	case o.Changes && o.Family == plan.Counting:
		w.changeCounting(rng, o)
	case o.Changes:
		w.change(rng, o)
	case !o.Quiet:
		w.inspect(rng, o)
	}
}
