package rwlock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
)

// openSmall opens a client whose connections take little memory, as there are many.
func openSmall(b *testing.B, s *redistest.Server) *latchkey.Client {
	o := s.Option()
	o.ReadBufferEachConn, o.WriteBufferEachConn, o.RingScaleEachConn = 1<<12, 1<<12, 4
	c, err := rueidisclient.New(o)
	require.NoError(b, err)
	return c
}

// spent is what the server has done: for how long it ran scripts by the clock, which counts also what other
// processes of the machine took of that, and how much of a processor it has used, for all it does.
type spent struct{ scripts, processor time.Duration }

func spentBy(b *testing.B, plain rueidis.Client) (s spent) {
	b.Helper()
	text, err := plain.Do(context.Background(), plain.B().Arbitrary("INFO", "everything").Build()).ToString()
	require.NoError(b, err)
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case strings.HasPrefix(name, "cmdstat_eval"):
			_, rest, _ = strings.Cut(rest, "usec=")
			usec, _, _ := strings.Cut(rest, ",")
			s.scripts += parsed(b, usec, time.Microsecond)
		case name == "used_cpu_sys_main_thread", name == "used_cpu_user_main_thread":
			s.processor += parsed(b, rest, time.Second)
		}
	}
	return s
}

func parsed(b *testing.B, number string, unit time.Duration) time.Duration {
	b.Helper()
	n, err := strconv.ParseFloat(number, 64)
	require.NoError(b, err)
	return time.Duration(n * float64(unit))
}

// crowd calls f for each number below n, a hundred at a time.
func crowd(n int, f func(i int)) {
	next, wg := atomic.Int64{}, sync.WaitGroup{}
	for range 100 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// bystander locks another name again and again until ctx ends, and returns its slowest Unlock.
func bystander(ctx context.Context, b *testing.B, l *latchkey.Lock) (slowest time.Duration) {
	for ctx.Err() == nil {
		h, err := l.Lock(context.Background())
		if err != nil {
			continue
		}
		began := time.Now()
		if err := h.Unlock(context.Background()); err != nil {
			b.Log("bystander: ", err)
		}
		slowest = max(slowest, time.Since(began))
		time.Sleep(20 * time.Millisecond)
	}
	return slowest
}

// BenchmarkCrowd has clients that read, one that waits to write, and as many that wait to read once more. It
// reports for how much of the time the server runs scripts, above all while nothing happens (wait), how many
// holds are lost, how late the writer is after the last reader has left, and how slow an Unlock of another
// name is meanwhile.
func BenchmarkCrowd(b *testing.B) {
	for _, n := range []int{300, 1000, 2000} {
		b.Run(fmt.Sprint("clients=", n), func(b *testing.B) { crowdOf(b, n) })
	}
}

func crowdOf(b *testing.B, n int) {
	redistest.Require(b)
	s := redistest.NewProcess(b, "--maxclients", "20000")
	plain, ctx := s.Client(b), context.Background()
	clients, locks, reads := make([]*latchkey.Client, n), make([]*rwlock.Lock, n), make([]*latchkey.Hold, n)
	crowd(n, func(i int) {
		clients[i] = openSmall(b, s)
		locks[i] = newLock(b, clients[i], rwlock.WithoutLocalHandOff())
	})
	defer crowd(n, func(i int) { clients[i].Close() })
	other := openSmall(b, s)
	defer other.Close()
	beside, err := rlock.New(other, "beside")
	require.NoError(b, err)
	for b.Loop() {
		began, since := spentBy(b, plain), time.Now()
		report := func(phase string) {
			now, d := spentBy(b, plain), time.Since(since)
			b.ReportMetric(100*float64(now.scripts-began.scripts)/float64(d), "%-"+phase)
			b.ReportMetric(100*float64(now.processor-began.processor)/float64(d), "%-cpu-"+phase)
			began, since = now, time.Now()
		}
		crowd(n, func(i int) {
			h, err := locks[i].Read().Lock(ctx)
			require.NoError(b, err)
			reads[i] = h
		})

		var slowest time.Duration
		var watching sync.WaitGroup
		stop, cancel := context.WithCancel(ctx)
		watching.Go(func() { slowest = bystander(stop, b, beside) })
		writer := newLock(b, other)
		wrote := make(chan time.Time, 1)
		var writes *latchkey.Hold
		go func() {
			writes, _ = writer.Write().Lock(ctx)
			wrote <- time.Now()
		}()
		joined := atomic.Int64{} // by those that have not heard of the writer
		queued := func(most int) func() bool {
			return func() bool {
				state, err := writer.Write().Inspect(ctx)
				return err == nil && state.Waiting+int(joined.Load()) >= most
			}
		}
		require.Eventually(b, queued(1), 2*long, 10*time.Millisecond)
		time.Sleep(time.Second) // the message
		leave, waits := make(chan struct{}), sync.WaitGroup{}
		for i := range n {
			waits.Go(func() {
				more, err := locks[i].Read().Lock(ctx)
				joined.Add(1)
				<-leave
				if err == nil {
					_ = more.Unlock(ctx)
				}
			})
		}
		require.Eventually(b, queued(n+1), 6*long, 100*time.Millisecond)
		b.ReportMetric(float64(joined.Load()), "joined")
		report("begin")
		time.Sleep(15 * time.Second) // what it costs to wait
		report("wait")
		lost := 0
		for _, h := range reads {
			if !h.Held() {
				lost++
			}
		}
		close(leave)
		crowd(n, func(i int) { _ = reads[i].Unlock(ctx) })
		left := time.Now()
		late := (<-wrote).Sub(left)
		require.NoError(b, writes.Unlock(ctx))
		granted := time.Now()
		waits.Wait()
		b.ReportMetric(float64(time.Since(granted).Milliseconds()), "ms-all-read")
		report("end")
		cancel()
		watching.Wait()
		b.ReportMetric(float64(lost), "lost")
		b.ReportMetric(float64(late.Microseconds())/1000, "ms-late")
		b.ReportMetric(float64(slowest.Microseconds())/1000, "ms-unlock")
	}
	b.ReportMetric(0, "ns/op")
}
