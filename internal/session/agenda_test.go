package session_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/session"
)

// What is due at the same time is called by one goroutine, each in its time, and not what was stopped. A
// function may set its own date again.
func TestAgenda(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &session.Client{}
		began := time.Now()
		var running, called atomic.Int64
		var dates []*session.Date
		at := map[int]time.Duration{}
		for i := range 1000 {
			dates = append(dates, c.AfterFunc(time.Second, func() {
				require.EqualValues(t, 1, running.Add(1))
				called.Add(1)
				at[i] = time.Since(began)
				running.Add(-1)
			}))
		}
		require.True(t, dates[0].Stop())
		require.False(t, dates[0].Stop())
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		require.True(t, dates[1].Reset(time.Millisecond))
		require.True(t, dates[2].Reset(time.Minute))
		wait(2 * time.Second)
		require.EqualValues(t, 998, called.Load())
		require.Equal(t, time.Millisecond, at[1])
		require.Equal(t, time.Second, at[999])
		require.NotContains(t, at, 0)
		require.False(t, dates[0].Reset(time.Second))
		wait(time.Minute)
		require.Equal(t, 3*time.Second, at[0])
		require.Equal(t, time.Minute, at[2])

		var mu sync.Mutex
		var again *session.Date
		rings := 0
		mu.Lock()
		again = c.AfterFunc(time.Second, func() {
			mu.Lock()
			defer mu.Unlock()
			if rings++; rings < 3 {
				again.Reset(time.Second)
			}
		})
		mu.Unlock()
		wait(time.Minute)
		require.Equal(t, 3, rings)
	})
}

// A few goroutines run what nobody waits for, in the order in which it came. They become more, slowly, while
// nothing goes on.
func TestGoSparingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &session.Client{}
		var begun atomic.Int64
		proceed := make(chan struct{})
		add := func(n int) {
			for range n {
				c.GoSparingly(func() { begun.Add(1); <-proceed })
			}
			synctest.Wait()
		}
		add(3000)
		few := begun.Load()
		require.LessOrEqual(t, few, int64(20))
		time.Sleep(900 * time.Millisecond)
		add(1)
		require.Equal(t, few, begun.Load())
		time.Sleep(100 * time.Millisecond)
		for range 10 {
			add(100)
			time.Sleep(250 * time.Millisecond)
		}
		require.Equal(t, few+10, begun.Load())
		close(proceed)
		synctest.Wait()
		require.EqualValues(t, 4001, begun.Load())
		add(1)
		require.EqualValues(t, 4002, begun.Load())
	})
}
