package wait_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// placed notes the place with which each question is sent.
type placed struct {
	scripted
	places chan int64
}

func (p *placed) Ask(ctx context.Context, w *wait.Waiter, mode lua.Mode, until int64) (lua.Acquired, error) {
	p.places <- w.Place.Load()
	return p.scripted.Ask(ctx, w, mode, until)
}

// Each question names the place that the last answer told, if it told one.
func TestPlaceGoesWithTheNextQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &placed{scripted{replies: make(chan lua.Acquired, 9)}, make(chan int64, 9)}
		p.waiters = wait.New(new(sync.Mutex), t.Context(), p, time.Minute)
		for _, place := range []int64{700, 650, 0} {
			p.replies <- lua.Acquired{Queued: true, Sequence: 0, Place: place, Ends: 500, Now: time.Now().UnixMicro()}
		}
		p.replies <- lua.Acquired{Owned: lua.Owned{Token: 5}}
		require.NoError(t, p.waiters.Wait(t.Context(), &wait.Waiter{Number: 1, Owner: "a:1", Lease: time.Hour}))
		for _, place := range []int64{0, 700, 650, 0} {
			require.Equal(t, place, <-p.places)
		}
		time.Sleep(time.Minute) // timers
	})
}
