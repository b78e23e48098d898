package lease_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/internal/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a Redis that renews what it is asked to, after a time, unless it is told otherwise.
type server struct {
	mu      sync.Mutex
	latency time.Duration
	err     error
	passing bool
	gone    map[*lease.Item]bool
	stuck   *lease.Item // cannot be renewed, nor what is in a batch with it
	sent    []int       // sizes of batches
	times   []time.Duration
	leases  []time.Duration
	began   time.Time
}

func (s *server) Go(f func()) { go f() }

func (s *server) Slot(i *lease.Item) uint16 { return uint16(i.Owner.(*hold).slot) }

func (s *server) Renew(ctx context.Context, items []*lease.Item, leases []time.Duration) ([]bool, bool, error) {
	s.mu.Lock()
	s.sent = append(s.sent, len(items))
	s.times = append(s.times, time.Since(s.began))
	s.leases = append(s.leases, leases...)
	stuck := s.stuck
	s.mu.Unlock()
	if s.latency > 0 {
		select {
		case <-time.After(s.latency):
		case <-ctx.Done(): // a test ends with a renewal under way
			return nil, true, ctx.Err()
		}
	}
	if slices.Contains(items, stuck) {
		if len(items) > 1 {
			return nil, true, lease.ErrApart
		}
		return nil, true, errors.New("stuck")
	}
	held := make([]bool, len(items))
	for n, i := range items {
		held[n] = !s.gone[i]
	}
	return held, s.passing, s.err
}

// batches are the sizes of those that were sent.
func (s *server) batches() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

type hold struct {
	item lease.Item
	slot int

	mu     sync.Mutex
	reason error
	when   time.Time
}

func (h *hold) Lost(reason error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason != nil {
		panic("lost twice")
	}
	if why := h.item.Expiry(); why != reason { //nolint:errorlint // it is that one
		panic("whoever has seen by the clock that it is over found another reason: " + why.Error())
	}
	h.reason, h.when = reason, time.Now()
}

func (h *hold) lost() error { h.mu.Lock(); defer h.mu.Unlock(); return h.reason }

func (h *hold) at() time.Time { h.mu.Lock(); defer h.mu.Unlock(); return h.when }

func keep(k *lease.Keeper, d time.Duration, end time.Duration) *hold {
	h := &hold{}
	h.item.Owner, h.item.Lease = h, d
	if end > 0 {
		h.item.End = time.Now().Add(end)
	}
	k.Keep(&h.item, time.Now(), d)
	return h
}

func run(t *testing.T, s *server, test func(k *lease.Keeper)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s.began = time.Now()
		test(lease.NewKeeper(ctx, s))
		cancel()
		synctest.Wait()
	})
}

// pass lets virtual time pass, and what falls due in it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestRenewsEveryThird(t *testing.T) {
	s := &server{latency: 5 * time.Millisecond}
	run(t, s, func(k *lease.Keeper) {
		h := keep(k, 9*time.Second, 0)
		pass(time.Hour)
		require.NoError(t, h.lost())
		require.InDelta(t, 3600/3, len(s.sent), 130)
		require.Greater(t, h.item.Left(), 5*time.Second)
		require.True(t, k.Remove(&h.item))
		sent := len(s.sent)
		pass(time.Hour)
		require.Len(t, s.sent, sent, "what is not kept is not renewed")
	})
}

// Trust ends at the moment the last successful request was sent, plus the lease, whether or not Redis
// answers.
func TestTrustEndsWithoutAnAnswer(t *testing.T) {
	s := &server{latency: time.Hour}
	run(t, s, func(k *lease.Keeper) {
		h := keep(k, 3*time.Second, 0)
		began := time.Now()
		pass(2998 * time.Millisecond)
		require.NoError(t, h.lost())
		require.Equal(t, time.Millisecond, h.item.Left(), "the lease less a millisecond")
		pass(2 * time.Millisecond)
		require.ErrorIs(t, h.lost(), lease.ErrExpired)
		require.Equal(t, 2999*time.Millisecond, h.at().Sub(began).Truncate(time.Microsecond))
		pass(2 * time.Hour)
		require.LessOrEqual(t, h.item.Left(), time.Duration(0), "an answer that comes later does not bring it back")
	})
}

// The trust of a renewal counts from when it was sent, not from when it was answered.
func TestTrustCountsFromTheSend(t *testing.T) {
	s := &server{latency: 800 * time.Millisecond}
	run(t, s, func(k *lease.Keeper) {
		h := keep(k, 3*time.Second, 0)
		for h.item.Left() > 0 && time.Since(s.began) < 10*time.Second {
			pass(time.Millisecond)
			last := s.began
			s.mu.Lock()
			times := slices.Clone(s.times)
			s.mu.Unlock()
			for _, at := range times {
				if answered := s.began.Add(at + s.latency); !answered.After(time.Now()) {
					last = s.began.Add(at)
				}
			}
			require.LessOrEqual(t, h.item.Left(), time.Until(last.Add(3*time.Second-lease.Margin)))
		}
		require.NoError(t, h.lost())
		k.Remove(&h.item)
		pass(time.Second)
	})
}

func TestGoneIsLostAtOnce(t *testing.T) {
	s := &server{gone: map[*lease.Item]bool{}}
	run(t, s, func(k *lease.Keeper) {
		a, b := keep(k, 9*time.Second, 0), keep(k, 9*time.Second, 0)
		s.gone[&a.item] = true
		k.RenewAll()
		require.ErrorIs(t, a.lost(), lease.ErrGone)
		require.LessOrEqual(t, a.item.Left(), time.Duration(0))
		require.NoError(t, b.lost(), "and only what is gone")
		require.False(t, k.Remove(&a.item))
		require.True(t, k.Remove(&b.item))
	})
}

// What cannot be renewed for a while, because its slot is moving, keeps nothing else from it.
// Rule 26.
func TestStuckIsLostAlone(t *testing.T) {
	s := &server{}
	run(t, s, func(k *lease.Keeper) {
		var holds []*hold
		for range 10 {
			holds = append(holds, keep(k, 9*time.Second, 0))
		}
		s.mu.Lock()
		s.stuck = &holds[3].item
		s.mu.Unlock()
		pass(20 * time.Second)
		for n, h := range holds {
			if n == 3 {
				require.ErrorIs(t, h.lost(), lease.ErrExpired)
				continue
			}
			require.NoError(t, h.lost())
			require.True(t, k.Remove(&h.item))
		}
	})
}

func TestErrors(t *testing.T) {
	t.Run("that pass wait for RenewAll", func(t *testing.T) {
		s := &server{err: errors.New("away"), passing: true}
		run(t, s, func(k *lease.Keeper) {
			h := keep(k, 9*time.Second, 0)
			pass(8 * time.Second)
			require.Len(t, s.sent, 1, "one probe is enough, and that is not this one")
			s.err = nil
			k.RenewAll()
			pass(8 * time.Second)
			require.NoError(t, h.lost())
			k.Remove(&h.item)
		})
	})
	t.Run("that do not are tried again a period later", func(t *testing.T) {
		s := &server{err: errors.New("NOPERM")}
		run(t, s, func(k *lease.Keeper) {
			h := keep(k, 9*time.Second, 0)
			pass(10 * time.Second)
			require.GreaterOrEqual(t, len(s.sent), 2)
			require.ErrorIs(t, h.lost(), lease.ErrExpired)
		})
	})
}

func TestEnd(t *testing.T) {
	t.Run("a fixed lease is never renewed", func(t *testing.T) {
		s := &server{}
		run(t, s, func(k *lease.Keeper) {
			h := keep(k, 5*time.Second, 5*time.Second)
			pass(6 * time.Second)
			require.Empty(t, s.sent)
			require.ErrorIs(t, h.lost(), lease.ErrEnded)
			require.Equal(t, 5*time.Second-lease.Margin, h.at().Sub(s.began).Truncate(time.Millisecond))
		})
	})
	t.Run("unless it was granted short, and then once", func(t *testing.T) {
		s := &server{}
		run(t, s, func(k *lease.Keeper) {
			h := &hold{}
			h.item.Owner, h.item.Lease, h.item.End = h, 5*time.Second, time.Now().Add(5*time.Second)
			k.Keep(&h.item, time.Now(), 2*time.Second)
			pass(6 * time.Second)
			require.Len(t, s.sent, 1)
			require.InDelta(t, 5*time.Second-s.times[0], s.leases[0], float64(time.Millisecond), "for the rest of it, not again for all")
			require.Equal(t, 5*time.Second-lease.Margin, h.at().Sub(s.began).Truncate(time.Millisecond))
		})
	})
	t.Run("no renewal reaches beyond it", func(t *testing.T) {
		s := &server{}
		run(t, s, func(k *lease.Keeper) {
			h := keep(k, 3*time.Second, 10*time.Second)
			pass(11 * time.Second)
			require.ErrorIs(t, h.lost(), lease.ErrEnded)
			require.Equal(t, 10*time.Second-lease.Margin, h.at().Sub(s.began).Truncate(time.Millisecond))
			for n, at := range s.times {
				require.LessOrEqual(t, at+s.leases[n], 10*time.Second+time.Millisecond)
			}
		})
	})
}

func TestBatches(t *testing.T) {
	s := &server{}
	run(t, s, func(k *lease.Keeper) {
		var holds []*hold
		for n := range 250 {
			h := &hold{slot: n % 2}
			h.item.Owner, h.item.Lease = h, 9*time.Second
			k.Keep(&h.item, time.Now(), 9*time.Second)
			holds = append(holds, h)
		}
		k.RenewAll()
		require.ElementsMatch(t, []int{100, 25, 100, 25}, s.sent, "at most a hundred of one slot in a script")
		for _, h := range holds {
			require.True(t, k.Remove(&h.item))
		}
	})
}

// Holds that were taken one after the other fall due one after the other, and are renewed many at a time.
func TestBatchesAreFilled(t *testing.T) {
	s := &server{latency: time.Millisecond}
	run(t, s, func(k *lease.Keeper) {
		const holds, period = 5000, 3 * time.Second
		var all []*hold
		for range holds {
			all = append(all, keep(k, 3*period, 0))
			time.Sleep(period / holds)
		}
		s.mu.Lock()
		s.sent = nil
		s.mu.Unlock()
		pass(100 * period)
		renewals := 0
		for _, n := range s.sent {
			renewals += n
		}
		require.InDelta(t, 100*holds, renewals, 25*holds)
		require.Greater(t, float64(renewals)/float64(len(s.sent)), 90.0, "of a hundred")
		for _, h := range all {
			require.NoError(t, h.lost())
			require.True(t, k.Remove(&h.item))
		}
	})
}

func TestLose(t *testing.T) {
	s := &server{}
	run(t, s, func(k *lease.Keeper) {
		h := keep(k, 9*time.Second, 0)
		reason := errors.New("forced")
		k.Lose(&h.item, reason)
		require.Equal(t, reason, h.lost())
		k.Lose(&h.item, reason) // once: it would panic
		require.LessOrEqual(t, h.item.Left(), time.Duration(0))
	})
}

// What is in doubt is renewed at once, and once more when a renewal was under way: that may have been
// answered before there was a doubt.
// Rule 42.
func TestAsk(t *testing.T) {
	s := &server{latency: 10 * time.Millisecond, gone: map[*lease.Item]bool{}}
	run(t, s, func(k *lease.Keeper) {
		h, fixed := keep(k, time.Minute, 0), keep(k, time.Minute, time.Minute)
		k.Ask(&h.item)
		time.Sleep(time.Millisecond)
		require.Equal(t, []int{1}, s.batches())
		k.Ask(&h.item)
		k.Ask(&h.item)
		time.Sleep(time.Second)
		require.Equal(t, []int{1, 1}, s.batches())
		require.NoError(t, h.lost())
		k.Ask(&fixed.item) // also one whose lease ends at a time of its own
		time.Sleep(time.Second)
		require.Equal(t, []int{1, 1, 1}, s.batches())
		synctest.Wait() // the last renewal is over
		s.gone[&h.item] = true
		k.Ask(&h.item)
		time.Sleep(time.Second)
		require.ErrorIs(t, h.lost(), lease.ErrGone)
		k.Ask(&h.item) // which does nothing any more
		time.Sleep(time.Second)
		require.Len(t, s.batches(), 4)
	})
}

// A lease that was granted by message is confirmed once, soon, together with others, and not at all when it
// is over before.
// Rule 5.
func TestShortLeasesAreConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &server{began: time.Now()}
		k := lease.NewKeeper(t.Context(), r)
		keepShort := func(end time.Duration) *hold {
			h := &hold{}
			h.item.Owner, h.item.Lease = h, 10*time.Second
			if end > 0 {
				h.item.End, h.item.Lease = time.Now().Add(end), end
			}
			k.KeepShort(&h.item, time.Now(), min(2*time.Second, h.item.Lease))
			return h
		}
		for range 3 {
			brief := keepShort(0)
			time.Sleep(10 * time.Millisecond)
			require.True(t, k.Remove(&brief.item))
		}
		time.Sleep(time.Second)
		require.Empty(t, r.batches(), "short sections pay nothing")
		first := keepShort(0)
		time.Sleep(25 * time.Millisecond)
		second, fixed := keepShort(0), keepShort(time.Second)
		time.Sleep(24 * time.Millisecond)
		require.Empty(t, r.batches())
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []int{3}, r.batches(), "together")
		require.Greater(t, first.item.Left(), 9*time.Second)
		require.Greater(t, second.item.Left(), 9*time.Second)
		require.LessOrEqual(t, fixed.item.Left(), 980*time.Millisecond)
		time.Sleep(2 * time.Second)
		require.Equal(t, []int{3}, r.batches(), "a fixed lease is confirmed, and not renewed")
		require.ErrorIs(t, fixed.lost(), lease.ErrEnded)
		k.Remove(&first.item)
		k.Remove(&second.item)
	})
}
