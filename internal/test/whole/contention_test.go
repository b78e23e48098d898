package whole_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

type caller struct{}

// waitsOf is what hooks were told of one call. Its context has it.
type waitsOf struct{ waiting, over, contended atomic.Int64 }

func ofContext(e latchkey.Event) *waitsOf {
	w, _ := e.Context.Value(caller{}).(*waitsOf)
	return w
}

// contentious are calls that take something for a moment. Each client has one of the name.
var contentious = map[string]func(c []*latchkey.Client) (func(ctx context.Context) error, error){
	"rlock": func(c []*latchkey.Client) (func(ctx context.Context) error, error) {
		return takesLock(wantedKinds["rlock"](c[0]))
	},
	"fairlock": func(c []*latchkey.Client) (func(ctx context.Context) error, error) {
		return takesLock(wantedKinds["fairlock"](c[0]))
	},
	"spinlock": func(c []*latchkey.Client) (func(ctx context.Context) error, error) {
		return takesLock(wantedKinds["spinlock"](c[0]))
	},
	"lingering": func(c []*latchkey.Client) (func(ctx context.Context) error, error) {
		return takesLock(rlock.New(c[0], "a", rlock.WithLinger(time.Second)))
	},
	"redlock": func(c []*latchkey.Client) (func(ctx context.Context) error, error) {
		return takesLock(redlock.New(c, "a"))
	},
	"halves": func(c []*latchkey.Client) (func(ctx context.Context) error, error) {
		l, err := rwlock.New(c[0], "a")
		if err != nil {
			return nil, err
		}
		read, _ := takesLock(l.Read(), nil)
		write, _ := takesLock(l.Write(), nil)
		return func(ctx context.Context) error {
			if rand.IntN(2) == 0 {
				return read(ctx)
			}
			return write(ctx)
		}, nil
	},
	"permits": func(c []*latchkey.Client) (func(ctx context.Context) error, error) {
		s, err := semaphore.New(c[0], "permits", semaphore.WithCapacity(3))
		return func(ctx context.Context) error {
			p, err := s.Acquire(ctx, 1+rand.IntN(3))
			if err == nil {
				err = p.Release(context.Background())
			}
			return err
		}, err
	},
	"plain": func(c []*latchkey.Client) (func(ctx context.Context) error, error) {
		s, err := semaphore.NewCounting(c[0], "plain", semaphore.WithCapacity(2))
		return func(ctx context.Context) error {
			err := s.Acquire(ctx, 1)
			if err == nil {
				err = s.Release(context.Background(), 1)
			}
			return err
		}, err
	},
}

func takesLock(l *latchkey.Lock, err error) (func(ctx context.Context) error, error) {
	return func(ctx context.Context) error {
		var h *latchkey.Hold
		var err error
		switch rand.IntN(8) {
		case 0:
			h, err = l.TryLock(ctx)
		case 1:
			h, err = l.TryLockFor(ctx, time.Millisecond)
		default:
			h, err = l.Lock(ctx)
		}
		if err == nil {
			err = h.Unlock(context.Background())
		}
		return err
	}, err
}

// Of each call that waits for others a hook is told once, and once more that it is over, however it ends; of
// no other call.
func TestWaitingIsTold(t *testing.T) {
	for kind, create := range contentious {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var waiting, contended atomic.Int64
			over := func(e latchkey.Event) {
				if w := ofContext(e); w != nil {
					w.over.Add(1)
					if e.Contended {
						w.contended.Add(1)
						contended.Add(1)
					}
				}
			}
			hooks := latchkey.Observer{
				Waiting: func(e latchkey.Event) {
					if w := ofContext(e); w != nil {
						w.waiting.Add(1)
						waiting.Add(1)
					}
				},
				Acquired: over, Failed: over,
			}
			var sides [2][]*latchkey.Client
			for n := range 3 {
				if n > 0 && kind != "redlock" {
					break
				}
				s := redistest.New(t)
				for i := range sides {
					c, err := rueidisclient.New(s.Option(), latchkey.WithObserver(hooks), latchkey.WithCommandTimeout(10*time.Second))
					require.NoError(t, err)
					defer c.Close()
					sides[i] = append(sides[i], c)
				}
			}
			var calls sync.Map
			var wg sync.WaitGroup
			for _, clients := range sides {
				take, err := create(clients)
				require.NoError(t, err)
				for range 4 {
					wg.Go(func() {
						for range 60 {
							w := &waitsOf{}
							ctx, cancel := context.WithCancel(context.WithValue(context.Background(), caller{}, w))
							if rand.IntN(4) == 0 {
								time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, cancel)
							}
							if err := take(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, latchkey.ErrNotAcquired) {
								t.Error(err)
							}
							cancel()
							calls.Store(w, true)
						}
					})
				}
			}
			wg.Wait()
			calls.Range(func(w, _ any) bool {
				one := w.(*waitsOf)
				require.EqualValues(t, 1, one.over.Load())
				require.LessOrEqual(t, one.waiting.Load(), int64(1))
				require.Equal(t, one.waiting.Load(), one.contended.Load())
				return true
			})
			require.Positive(t, waiting.Load(), "some wait")
			require.Equal(t, waiting.Load(), contended.Load())
		})
	}
}
