package latchkeytest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// A hold that was not unlocked is logged, with the line that took it.
func TestHoldsLeftBehind(t *testing.T) {
	inner := trial(t, func(t testing.TB) {
		s := latchkeytest.NewServer(t)
		c, dead := s.Open(), s.Open()
		take(t, c, "left")
		ok(t, take(t, c, "unlocked").Unlock(t.Context()))
		latchkeytest.Lose(t, take(t, c, "lost"))
		take(t, dead, "of the dead")
		s.Kill(dead)
	})
	if len(inner.errors) > 0 || len(inner.logs) != 1 || !strings.Contains(inner.logs[0], `"left" is still held, and was taken at faults_test.go:`) {
		t.Fatalf("%q %q", inner.errors, inner.logs)
	}
}

// A goroutine of latchkey that goes on fails the test: here it is held up by a function of the program.
func TestGoroutinesLeftBehind(t *testing.T) {
	stay := make(chan struct{})
	defer close(stay)
	leave := func(opts ...latchkeytest.Option) func(t testing.TB) {
		return func(t testing.TB) {
			c := latchkeytest.NewServer(t, opts...).Open()
			inside := make(chan struct{})
			go func() {
				_ = newLock(t, c, "a").Do(t.Context(), func(context.Context, *latchkey.Hold) error {
					close(inside)
					<-stay
					return nil
				})
			}()
			within(t, inside, "inside")
		}
	}
	if inner := trial(t, leave(latchkeytest.WithoutLeakCheck())); len(inner.errors) > 0 {
		t.Fatal(inner.errors)
	}
	inner := trial(t, leave())
	if len(inner.errors) != 1 || !strings.Contains(inner.errors[0], "1 goroutines of latchkey are still running") {
		t.Fatal(inner.errors)
	}
	if inner := trial(t, func(t testing.TB) { take(t, latchkeytest.Open(t), "a") }); len(inner.errors) > 0 {
		t.Fatal("it is of another test: ", inner.errors)
	}
}

// One that ends a little later is waited for.
func TestGoroutinesThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := trial(t, func(t testing.TB) {
			c := latchkeytest.Open(t)
			inside := make(chan struct{})
			go func() {
				_ = newLock(t, c, "a").Do(t.Context(), func(ctx context.Context, _ *latchkey.Hold) error {
					close(inside)
					<-ctx.Done()                      // the client is closed
					time.Sleep(50 * time.Millisecond) // of the bubble: it ends 50 ms into the check
					return nil
				})
			}()
			within(t, inside, "inside")
		})
		if len(inner.errors) > 0 {
			t.Fatal(inner.errors)
		}
	})
}

func TestClass(t *testing.T) {
	for name, class := range map[string]string{
		"orders:42":                              "orders:*",
		"42":                                     "*",
		"orders:42:lines:7":                      "orders:*:lines:*",
		"{basket}:1":                             "{basket}:*",
		"user/deadbeef01/x":                      "user/*/x",
		"user:facade:defaced":                    "user:facade:defaced",
		"shard1":                                 "shard1",
		"day-2026-11-23":                         "day-*-*-*",
		"o:9b2e1f30-44aa-4c1e-8e0b-5d5cbb6a7c01": "o:*",
		"o:9b2e1f30-44aa-4c1e-8e0b-5d5cbb6a7c01:x": "o:*:x",
		"":       "",
		"::":     "::",
		"größe":  "größe",
		"größe1": "größe1",
	} {
		if got := latchkeytest.Class(name); got != class {
			t.Errorf("%q is of class %q, not %q", name, got, class)
		}
	}
}
