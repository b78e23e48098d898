package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/wait"
)

// An outage began when the first command was sent that was not answered, whichever fails first, and is over
// when a probe is answered. The next one begins after that, although what it fails by was sent before.
func TestOutageIsToldAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var told []wait.Outage
		h := &wait.Health{
			Context: t.Context(), Go: func(f func()) { go f() }, Patience: time.Hour, Lasting: func() {},
			Down: func(o wait.Outage) { told = append(told, o) },
			Up:   func(o wait.Outage) { told = append(told, o) },
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
		h := &wait.Health{
			Context: t.Context(), Go: func(f func()) { go f() }, Patience: time.Second,
			Lasting: func() { lasting++ }, Down: func(wait.Outage) {},
		}
		h.Up = func(wait.Outage) {
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
