package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
)

func TestMain(m *testing.M) {
	redistest.MainWithWorkers(m, func(mode []string) { traffic(mode[0], mode[1:]) })
}

// traceNames are the names that the processes use, and what each is.
var traceNames = map[string]lua.Family{
	"fair": lua.Locks, "line": lua.Locks, "lingers": lua.Locks, "halves": lua.ReadWrite,
	"pool": lua.Leased, "budgeted": lua.Leased, "passes": lua.Leased, "waits": lua.Leased, "counts": lua.Plain,
}

// traffic is the worker: goroutines that use locks of these names until they are killed, or at the end of its
// input.
func traffic(addr string, names []string) {
	var c *latchkey.Client
	for { // connections are killed meanwhile
		var err error
		option := rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true}
		if c, err = rueidisclient.New(option, latchkey.WithLease(600*time.Millisecond)); err == nil {
			break
		}
	}
	var wg sync.WaitGroup
	for _, name := range names {
		use := useForEver
		if isPool(name) {
			use = tradeForEver
		}
		for range users(name) {
			wg.Go(func() { use(c, name) })
		}
	}
	wg.Wait()
}

// users is how many goroutines of a process use a name. Each may have an entry in the queue of a fair one,
// and the model has room for six.
func users(name string) int {
	if name == "fair" {
		return 2
	}
	return 4
}

// halves are the locks of a name: one, or both halves.
func halves(c *latchkey.Client, name string) (all []*latchkey.Lock, err error) {
	var l *latchkey.Lock
	switch name {
	case "fair":
		l, err = fairlock.New(c, name)
	case "line":
		l, err = rlock.New(c, name, rlock.WithBudget(5, 20*time.Millisecond))
	case "lingers":
		l, err = rlock.New(c, name, rlock.WithLinger(30*time.Millisecond))
	case "halves":
		both, err := rwlock.New(c, name)
		if err != nil {
			return nil, err
		}
		return []*latchkey.Lock{both.Read(), both.Read(), both.Write()}, nil
	}
	return []*latchkey.Lock{l}, err
}

func useForEver(c *latchkey.Client, name string) {
	locks, err := halves(c, name)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for {
		if time.Now().UnixMilli()/400%3 == 0 { // at times few come, and at times nobody waits
			time.Sleep(rand.N(40 * time.Millisecond))
		}
		use(locks[rand.N(len(locks))], name)
	}
}

// use takes a lock once, in one of the ways that there are.
func use(l *latchkey.Lock, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	take := l.Lock
	switch n := rand.N(300); {
	case n == 0:
		_, _ = l.ForceUnlock(ctx) // it may fail: connections are killed
		return
	case n == 1:
		_, _ = l.Inspect(ctx)
		return
	case n < 30:
		short, end := context.WithTimeout(ctx, rand.N(5*time.Millisecond))
		defer end()
		ctx = short
	case n < 80 && traceNames[name] == lua.Locks:
		take = l.TryLock
	}
	h, err := take(ctx)
	if err != nil {
		return
	}
	if rand.N(4) == 0 {
		time.Sleep(rand.N(3 * time.Millisecond))
	}
	if traceNames[name] == lua.ReadWrite && rand.N(5) == 0 {
		_ = rwlock.Downgrade(context.Background(), h)
	}
	_ = h.Unlock(context.Background())
}

// texts are those of all scripts that are recorded.
func texts(t testing.TB) map[string]string {
	all := map[string]string{}
	for _, family := range []lua.Family{lua.Locks, lua.ReadWrite, lua.Leased, lua.Plain} {
		k, err := lua.NewKeys(family, "a", false)
		require.NoError(t, err)
		for name, text := range lua.Texts(k) {
			all[family.String()+"/"+name] = text
		}
	}
	return all
}

// errOver is what a run ends with that was long enough.
var errOver = errors.New("the run is over")

// run has processes use the locks of these names, and breaks what can break, until the time is over or a step
// is none of the model. altered are scripts that are run instead.
func run(
	t *testing.T, names map[string]lua.Family, altered map[string]string, span time.Duration,
) (c *checker, failed error) {
	t.Helper()
	s := redistest.NewProcess(t)
	r := redistest.NewRecorder(t, s, texts(t), altered, func(redistest.Step) bool { return rand.N(200) == 0 })
	words := r.Addr
	for name := range names {
		words += " " + name
	}
	workers := []*redistest.Worker{redistest.StartWorker(t, words), redistest.StartWorker(t, words)}
	ctx, cancel := context.WithTimeoutCause(t.Context(), span, errOver)
	defer cancel()
	var breaking sync.WaitGroup
	breaking.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			switch n % 5 {
			case 0, 2:
				r.Kill(func(subscribed bool) bool { return subscribed })
			case 3:
				r.Kill(func(bool) bool { return rand.N(2) == 0 })
			}
			if n%12 == 0 {
				i := n / 12 % len(workers)
				workers[i].Kill()
				workers[i] = redistest.StartWorker(t, words)
			}
		}
	})
	c = newChecker(names)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case step := <-r.Steps():
			if failed = c.check(step); failed != nil {
				cancel()
			}
		}
	}
	breaking.Wait()
	go func() { // what is still recorded
		for range r.Steps() {
		}
	}()
	for _, w := range workers {
		w.Kill()
	}
	r.Close()
	t.Logf("%d steps in %v (%s), after %d of them in several states",
		c.steps, span, strings.Trim(fmt.Sprint(c.taken), "map[]"), c.doubts)
	return c, failed
}

// What the scripts do is what the model's Redis does: of each lock by itself, in the long form, and of all.
func TestTraces(t *testing.T) {
	runs := map[string]map[string]lua.Family{"locks": {}, "permits": {}}
	for name, family := range traceNames {
		all := "locks"
		if isPool(name) {
			all = "permits"
		}
		runs[all][name] = family
		if redistest.Longer(0, 1) > 0 {
			runs[name] = map[string]lua.Family{name: family}
		}
	}
	for name, names := range runs {
		t.Run(name, func(t *testing.T) {
			together(t)
			_, err := run(t, names, nil, time.Duration(redistest.Longer(5, 130))*time.Second)
			require.NoError(t, err)
		})
	}
}
