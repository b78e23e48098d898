package retry_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/retry"
)

var errNet = errors.New("connection lost")

// An outage began when the first command was sent that was not answered, whichever fails first, and is over
// when a probe is answered. The next one begins after that, although what it fails by was sent before.
func TestOutageIsToldAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var told []retry.Outage
		h := &retry.Health{
			Context: t.Context(), Go: func(f func()) { go f() }, Patience: time.Hour, Lasting: func() {},
			Down: func(o retry.Outage) { told = append(told, o) },
			Up:   func(o retry.Outage) { told = append(told, o) },
		}
		time.Sleep(3 * time.Second)
		first := errors.New("first")
		probe := func(context.Context) error {
			if time.Since(began) < 5*time.Second {
				return errNet
			}
			return nil
		}
		h.Failed(first, began.Add(2*time.Second), probe)
		h.Failed(errNet, began.Add(time.Second), probe)
		require.NoError(t, h.Wait(t.Context()))
		synctest.Wait()
		require.Len(t, told, 2)
		require.Equal(t, first, told[0].Err)
		require.Zero(t, told[0].Away)
		require.Equal(t, first, told[1].Err)
		require.Equal(t, began.Add(time.Second), told[1].Began)
		require.GreaterOrEqual(t, told[1].Away, 4*time.Second)
		require.Less(t, told[1].Away, 5*time.Second)
		h.Failed(errNet, began.Add(2*time.Second), probe)
		require.NoError(t, h.Wait(t.Context()))
		synctest.Wait()
		require.Len(t, told, 4)
		require.Equal(t, told[1].Began.Add(told[1].Away), told[3].Began)
	})
}

// An outage that follows the one before without anybody having been let through in between is lasting again.
func TestEachOutageLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		lasting, ups := 0, 0
		probe := func(context.Context) error {
			if at := time.Since(began); at < 5*time.Second || at > 6*time.Second && at < 12*time.Second {
				return errNet
			}
			return nil
		}
		h := &retry.Health{
			Context: t.Context(), Go: func(f func()) { go f() }, Patience: time.Second,
			Lasting: func() { lasting++ }, Down: func(retry.Outage) {},
		}
		h.Up = func(retry.Outage) {
			if ups++; ups == 1 {
				time.Sleep(time.Until(began.Add(7 * time.Second)))
				h.Failed(errNet, time.Now(), probe) // a renewal, while it is being let through
			}
		}
		h.Failed(errNet, began, probe)
		require.NoError(t, h.Wait(t.Context()))
		require.Equal(t, 2, ups)
		require.Equal(t, 2, lasting)
	})
}

// What fails while Redis is welcomed back is welcomed again.
func TestFailureDuringUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ups atomic.Int64
		var h *retry.Health
		probe := func(context.Context) error { return nil }
		h = &retry.Health{
			Context: t.Context(), Go: func(f func()) { go f() }, Down: func(retry.Outage) {}, Lasting: func() {}, Patience: time.Second,
			Up: func(retry.Outage) {
				if ups.Add(1) == 1 {
					h.Failed(errNet, time.Now(), probe) // a renewal
				}
			},
		}
		h.Failed(errNet, time.Now(), probe)
		require.NoError(t, h.Wait(t.Context()))
		require.EqualValues(t, 2, ups.Load())
	})
}

func TestBackoffAndHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var down, up, lasting, probes atomic.Int64
		var working atomic.Bool
		h := &retry.Health{
			Context: ctx, Go: func(f func()) { go f() },
			Down: func(retry.Outage) { down.Add(1) }, Lasting: func() { lasting.Add(1) }, Patience: time.Second,
			Up: func(retry.Outage) { up.Add(1) },
		}
		require.NoError(t, h.Wait(ctx))
		away := errors.New("away")
		for range 1000 {
			h.Failed(away, time.Now(), func(context.Context) error {
				probes.Add(1)
				if working.Load() {
					return nil
				}
				return away
			})
		}
		var passed sync.WaitGroup
		for range 1000 {
			passed.Go(func() {
				if err := h.Wait(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(10 * time.Second)
		require.EqualValues(t, 1, down.Load())
		require.EqualValues(t, 1, lasting.Load())
		require.Less(t, probes.Load(), int64(100), "one probe at a time, at growing intervals: 54, with a deviation of 4")
		require.Greater(t, probes.Load(), int64(10))
		require.Equal(t, away, h.Away())
		limited, stop := context.WithTimeout(ctx, time.Second)
		require.ErrorIs(t, h.Wait(limited), context.DeadlineExceeded)
		stop()
		working.Store(true)
		passed.Wait()
		require.EqualValues(t, 1, up.Load())
		require.NoError(t, h.Away())
		require.NoError(t, h.Wait(ctx))
		h.Succeeded()
	})
}
