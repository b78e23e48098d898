package chromium

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

func TestMain(m *testing.M) { redistest.MainWithWorkers(m, work) }

// Names that are made to do harm, and to be hard to show.
const (
	wicked = `<script>document.title="owned"</script>`
	arabic = "قفل الطلبات رقم ٤٢"
)

var long = strings.Repeat("a-very-long-name/", 30)[:500]

// fleet starts processes that work, and waits until all have begun.
func fleet(t *testing.T, s *redistest.Server, processes int) {
	t.Helper()
	for n := range processes {
		w := redistest.StartWorker(t, fmt.Sprintf("%s %d", s.Addr, n))
		w.Next(t, "begun")
	}
}

// work is a process of the fleet.
func work(words []string) {
	n := int(words[1][0] - '0')
	ctx := context.Background()
	c := locktest.Connected(words[0], latchkey.WithLabel(fmt.Sprintf("importer-%d", n+1)), latchkey.WithLogger(slog.New(slog.DiscardHandler)))
	turns := func(l *latchkey.Lock, note string, lasts time.Duration) {
		for {
			h, err := l.Lock(latchkey.WithNote(ctx, note))
			if err != nil {
				time.Sleep(100 * time.Millisecond) // Redis is away
				continue
			}
			select {
			case <-time.After(time.Duration((0.5 + rand.Float64()) * float64(lasts))):
			case <-h.Context().Done():
			}
			_ = h.Unlock(ctx)
			time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
		}
	}
	go turns(latchkey.Must(fairlock.New(c, "orders:42")), "charge order 42", time.Hour)
	go turns(latchkey.Must(rlock.New(c, "stock:7781")), "", 30*time.Millisecond)
	go turns(latchkey.Must(rlock.New(c, "invoices/2026-11")), "close the month", 5*time.Second)
	switch n {
	case 0:
		go turns(latchkey.Must(rlock.New(c, wicked)), `<img src=x onerror="document.title='owned'">`, time.Hour)
		go turns(latchkey.Must(rlock.New(c, long)), "of 500 bytes", time.Hour)
	case 1:
		go turns(latchkey.Must(rlock.New(c, arabic)), "ملاحظة", time.Hour)
	case 2, 3, 4:
		go turns(latchkey.Must(rwlock.New(c, "prices")).Read(), "", 20*time.Second)
	case 5:
		go turns(latchkey.Must(rwlock.New(c, "prices")).Write(), "new prices", time.Second)
	}
	go func() {
		permits := latchkey.Must(semaphore.New(c, "exports", semaphore.WithCapacity(3)))
		for {
			if p, err := permits.Acquire(ctx, 1); err == nil {
				time.Sleep(time.Duration(rand.IntN(8000)) * time.Millisecond)
				_ = p.Release(ctx)
			}
		}
	}()
	for name, period := range map[string]time.Duration{"refresh-cache": time.Second, "send-mails": 2 * time.Second} {
		job := latchkey.Must(once.Every(c, name, period, func(context.Context, *once.Run) error {
			time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
			if name == "send-mails" && rand.IntN(3) == 0 {
				return errors.New("smtp: connection refused")
			}
			return nil
		}))
		go func() {
			for {
				_ = job.Run(ctx)
				time.Sleep(100 * time.Millisecond)
			}
		}()
	}
	go func() {
		candidate := latchkey.Must(leader.New(c, "scheduler"))
		for {
			_ = candidate.Run(ctx, func(ctx context.Context, _ leader.Term) error {
				<-ctx.Done()
				return nil
			})
			time.Sleep(100 * time.Millisecond)
		}
	}()
	if n < 3 {
		go func() { // each of three processes has an account, and wants the next one
			h, err := latchkey.Must(rlock.New(c, fmt.Sprintf("account:%d", n+1))).Lock(ctx)
			locktest.Check(err)
			time.Sleep(500 * time.Millisecond)
			_, _ = latchkey.Must(rlock.New(c, fmt.Sprintf("account:%d", (n+1)%3+1))).Lock(latchkey.WithNote(h.Context(), "transfer"))
			select {}
		}()
	}
	fmt.Println("begun")
	select {}
}
