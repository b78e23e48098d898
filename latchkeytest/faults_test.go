package latchkeytest_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

func take(t testing.TB, c *latchkey.Client, name string) *latchkey.Hold {
	t.Helper()
	h, err := newLock(t, c, name).Lock(t.Context())
	ok(t, err)
	return h
}

func TestLose(t *testing.T) {
	s := latchkeytest.NewServer(t)
	one, other := s.Open(), s.Open()
	hold := take(t, one, "a")
	again, err := newLock(t, one, "a").Lock(hold.Context())
	ok(t, err)
	began := time.Now()
	latchkeytest.Lose(t, hold)
	for _, h := range []*latchkey.Hold{hold, again} {
		is(t, context.Cause(h.Context()), latchkey.ErrLost)
		is(t, h.Unlock(t.Context()), latchkey.ErrLost)
	}
	h, err := newLock(t, other, "a").TryLock(t.Context()) // free at once
	ok(t, err)
	if h.Token() <= hold.Token() {
		t.Fatal("the token does not grow")
	}
	ok(t, h.Unlock(t.Context()))
	t.Logf("%v", time.Since(began))

	permits, err := semaphore.New(one, "permits", semaphore.WithCapacity(1))
	ok(t, err)
	p, err := permits.Acquire(t.Context(), 1)
	ok(t, err)
	latchkeytest.Lose(t, p)
	is(t, p.Err(), latchkey.ErrLost)
	p, err = permits.TryAcquire(t.Context(), 1)
	ok(t, err)
	ok(t, p.Release(t.Context()))

	catalog, err := rwlock.New(one, "catalog")
	ok(t, err)
	read, err := catalog.Read().Lock(t.Context())
	ok(t, err)
	latchkeytest.Lose(t, read)
	is(t, read.Err(), latchkey.ErrLost)
	write, err := catalog.Write().TryLock(t.Context())
	ok(t, err)
	ok(t, write.Unlock(t.Context()))

	kept, err := rlock.New(one, "kept", latchkey.WithMinHold(time.Hour))
	ok(t, err)
	hold, err = kept.Lock(t.Context())
	ok(t, err)
	latchkeytest.Lose(t, hold)
	hold = take(t, other, "kept")
	ok(t, hold.Unlock(t.Context()))
}

// What cannot be lost fails the test.
func TestLoseNothing(t *testing.T) {
	for what, give := range map[string]func(t testing.TB) *latchkey.Hold{
		"ended": func(t testing.TB) *latchkey.Hold {
			h := latchkeytest.Hold(t, "a")
			ok(t, h.Unlock(t.Context()))
			return h
		},
		"nil": func(testing.TB) *latchkey.Hold { return nil },
		"several servers": func(t testing.TB) *latchkey.Hold {
			l, err := redlock.New([]*latchkey.Client{latchkeytest.Open(t), latchkeytest.Open(t), latchkeytest.Open(t)}, "a")
			ok(t, err)
			h, err := l.Lock(t.Context())
			ok(t, err)
			t.Cleanup(func() { _ = h.Unlock(context.Background()) })
			return h
		},
	} {
		inner := trial(t, func(t testing.TB) { latchkeytest.Lose(t, give(t)) })
		if !inner.fatal || !strings.Contains(inner.errors[0], "Lose of ") {
			t.Fatal(what, inner.errors)
		}
	}
}

func TestHold(t *testing.T) {
	hold := latchkeytest.Hold(t, "orders:42")
	if hold.Name() != "orders:42" || hold.Token() <= 0 || !hold.Held() || hold.Context().Err() != nil {
		t.Fatal(hold.Name(), hold.Token(), hold.Err())
	}
	if next := latchkeytest.Hold(t, "orders:42"); next.Token() <= hold.Token() { // of another server
		t.Fatal(next.Token(), hold.Token())
	}
	latchkeytest.Lose(t, hold)
	is(t, context.Cause(hold.Context()), latchkey.ErrLost)
}

// Time that passes ends the leases of the dead, and keeps those of the living, however much it is.
func TestPass(t *testing.T) {
	s := latchkeytest.NewServer(t)
	living, dead, next := s.Open(latchkey.WithLease(time.Second)), s.Open(), s.Open()
	kept, left := take(t, living, "kept"), take(t, dead, "left")
	s.Kill(dead)
	within(t, left.Context().Done(), "ended")
	is(t, context.Cause(left.Context()), latchkey.ErrClosed)
	began := time.Now()
	if left.Unlock(t.Context()) == nil {
		t.Fatal("a dead process gave back what it held")
	}
	t.Logf("Unlock returned after %v", time.Since(began))
	granted := make(chan *latchkey.Hold, 1)
	go func() {
		h, _ := newLock(t, next, "left").Lock(t.Context())
		granted <- h
	}()
	s.Pass(9 * time.Second)
	select {
	case <-granted:
		t.Fatal("granted before the lease has ended")
	case <-time.After(20 * time.Millisecond):
	}
	s.Pass(time.Second)
	h := within(t, granted, "granted after the lease has ended")
	ok(t, h.Err())
	ok(t, h.Unlock(t.Context()))
	ok(t, kept.Err())
	_, err := newLock(t, next, "kept").TryLock(t.Context())
	is(t, err, latchkey.ErrNotAcquired)
	ok(t, kept.Unlock(t.Context()))
}

// What cannot be renewed is lost when its time is over.
func TestPassWhileDown(t *testing.T) {
	s := latchkeytest.NewServer(t)
	c := s.Open()
	hold := take(t, c, "a")
	s.Down()
	s.Pass(5 * time.Second)
	ok(t, hold.Err())
	s.Pass(5 * time.Second)
	is(t, hold.Err(), latchkey.ErrLost)
	_, err := newLock(t, c, "a").TryLock(t.Context())
	is(t, err, latchkey.ErrUnavailable)
	s.Up()
	hold = take(t, c, "a")
	ok(t, hold.Unlock(t.Context()))
}

func TestPassMistakes(t *testing.T) {
	inner := trial(t, func(t testing.TB) { latchkeytest.NewServer(t).Pass(-1) })
	if !inner.fatal {
		t.Fatal("a clock was set back")
	}
	url := redisURL(t)
	inner = trial(t, func(t testing.TB) { latchkeytest.NewServer(t, latchkeytest.OnRedis(url)).Pass(time.Hour) })
	if !inner.fatal || !strings.Contains(inner.errors[0], "real server") {
		t.Fatal(inner.errors)
	}
}

func TestSlow(t *testing.T) {
	const late = 30 * time.Millisecond
	s := latchkeytest.NewServer(t)
	c := s.Open()
	s.Slow(late)
	began := time.Now()
	hold := take(t, c, "a")
	if took := time.Since(began); took < late {
		t.Fatalf("it took %v", took)
	}
	s.Slow(0)
	ok(t, hold.Unlock(t.Context()))
}

// Waiters survive the end of their subscriptions.
func TestCutSubscriptions(t *testing.T) {
	s := latchkeytest.NewServer(t)
	subscribed := make(chan struct{}, 100)
	one, other := s.Open(), s.Open(latchkey.WithObserver(latchkey.Observer{Subscribed: func() { subscribed <- struct{}{} }}))
	within(t, subscribed, "subscribed")
	hold := take(t, one, "a")
	granted := make(chan error, 1)
	go func() {
		h, err := newLock(t, other, "a").Lock(t.Context())
		if err == nil {
			err = h.Unlock(t.Context())
		}
		granted <- err
	}()
	eventually(t, "queued", func() bool {
		state, err := newLock(t, one, "a").Inspect(t.Context())
		ok(t, err)
		return state.Waiting == 1
	})
	s.CutSubscriptions()
	within(t, subscribed, "subscribed again")
	ok(t, hold.Unlock(t.Context()))
	ok(t, within(t, granted, "granted"))
}

// Other clients reach the server by its URL, also other programs.
func TestURL(t *testing.T) {
	s := latchkeytest.NewServer(t)
	c, err := latchkey.Open(s.URL())
	ok(t, err)
	defer c.Close()
	hold := take(t, s.Open(), "a")
	_, err = newLock(t, c, "a").TryLock(t.Context())
	is(t, err, latchkey.ErrNotAcquired)
	ok(t, hold.Unlock(t.Context()))
	s.Down()
	_, err = newLock(t, c, "a").TryLock(t.Context())
	is(t, err, latchkey.ErrUnavailable)
}

func TestKillMistakes(t *testing.T) {
	c := latchkeytest.Open(t)
	inner := trial(t, func(t testing.TB) { latchkeytest.NewServer(t).Kill(c) })
	if !inner.fatal {
		t.Fatal("a client of another server was killed")
	}
	inner = trial(t, func(t testing.TB) {
		s := latchkeytest.NewServer(t)
		c := s.Open()
		s.Kill(c)
		s.Kill(c)
	})
	if len(inner.errors) > 0 {
		t.Fatal(inner.errors)
	}
}

// Whatever a test leaves on a real server is removed, and nothing else.
func TestOnRedis(t *testing.T) {
	url := redisURL(t)
	option, err := rueidis.ParseURL(url)
	ok(t, err)
	option.DisableCache = true
	plain, err := rueidis.NewClient(option)
	ok(t, err)
	defer plain.Close()
	ok(t, plain.Do(t.Context(), plain.B().Set().Key("theirs").Value("1").Build()).Error())
	keys := func() []string {
		all, err := plain.Do(t.Context(), plain.B().Keys().Pattern("*").Build()).AsStrSlice()
		ok(t, err)
		return all
	}
	during := 0
	inner := trial(t, func(t testing.TB) {
		s := latchkeytest.NewServer(t, latchkeytest.OnRedis(url))
		one, other := s.Open(latchkey.WithKeyPrefix("app:")), s.Open(latchkey.WithKeyPrefix("app:"))
		take(t, one, "a") // and nobody unlocks it
		p, err := semaphore.New(one, "permits", semaphore.WithCapacity(3))
		ok(t, err)
		_, err = p.Acquire(t.Context(), 1)
		ok(t, err)
		_, err = newLock(t, other, "a").TryLock(t.Context())
		is(t, err, latchkey.ErrNotAcquired)
		for _, key := range keys() {
			if key != "theirs" && !strings.Contains(key, s.Prefix()+"app:") {
				t.Errorf("%s has not the prefix", key)
			}
			during++
		}
	})
	if len(inner.errors) > 0 || during < 4 {
		t.Fatal(inner.errors, during)
	}
	if left := keys(); len(left) != 1 || left[0] != "theirs" {
		t.Fatal(left)
	}
}

// A program is tested in a bubble: ten minutes take no time there.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := latchkeytest.NewServer(t)
		one, other, dead := s.Open(), s.Open(), s.Open()
		hold, err := newLock(t, one, "a").TryLock(t.Context())
		ok(t, err)
		granted := make(chan *latchkey.Hold, 1)
		go func() {
			h, _ := newLock(t, other, "a").Lock(t.Context())
			granted <- h
		}()
		time.Sleep(10 * time.Minute)
		ok(t, hold.Err())
		ok(t, hold.Unlock(t.Context()))
		ok(t, (<-granted).Unlock(t.Context()))

		left := take(t, dead, "b")
		s.Kill(dead)
		began := time.Now()
		h := take(t, other, "b")
		if waited := time.Since(began); waited < 9*time.Second || waited > 11*time.Second {
			t.Fatalf("granted after %v", waited)
		}
		if h.Token() <= left.Token() {
			t.Fatal("the token does not grow")
		}
		ok(t, h.Unlock(t.Context()))
	})
}

// Users get latchkey, rueidis and miniredis, with what these need.
func TestDependencies(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{with .Module}}{{.Path}}{{end}}`, "-deps", ".").Output()
	ok(t, err)
	allowed := "github.com/latchkey-go/latchkey github.com/latchkey-go/latchkey/latchkeytest github.com/redis/rueidis " +
		"github.com/alicebob/miniredis/v2 github.com/yuin/gopher-lua golang.org/x/sync golang.org/x/sys"
	for module := range strings.FieldsSeq(string(list)) {
		if !strings.Contains(" "+allowed+" ", " "+module+" ") {
			t.Errorf("%s is imported", module)
		}
	}
}
