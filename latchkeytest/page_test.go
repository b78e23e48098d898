package latchkeytest_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
	"github.com/latchkey-go/latchkey/rlock"
)

// The snippets of docs/testing.md and of the tutorial that use the kit are the tests below, letter by letter: so they are
// compiled, and run.
func TestPage(t *testing.T) {
	here, err := os.ReadFile("page_test.go")
	ok(t, err)
	for _, name := range []string{"testing", "tutorial"} {
		page, err := os.ReadFile("../docs/" + name + ".md")
		ok(t, err)
		snippets := regexp.MustCompile("(?ms)^```go kit\n(.*?)^```$").FindAllSubmatch(page, -1)
		if len(snippets) == 0 {
			t.Fatal("there is none in", name)
		}
		for _, snippet := range snippets {
			if !strings.Contains(string(here), string(snippet[1])) {
				t.Errorf("%s: this is no test here:\n%s", name, snippet[1])
			}
		}
	}
}

func TestCharging(t *testing.T) {
	server := latchkeytest.NewServer(t)
	one, other := server.Open(), server.Open() // two processes
	lock, err := rlock.New(one, "orders:42")
	if err != nil {
		t.Fatal(err)
	}
	err = lock.Do(t.Context(), func(ctx context.Context, hold *latchkey.Hold) error {
		latchkeytest.Lose(t, hold) // as if its lease had ended
		return charge(ctx, hold)
	})
	if !errors.Is(err, latchkey.ErrLost) {
		t.Fatalf("charged without the lock: %v", err)
	}
	if _, err := lock.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Kill(one)              // it gives nothing back
	server.Pass(10 * time.Second) // until its lease is over
	again, err := rlock.New(other, "orders:42")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Do(t.Context(), charge); err != nil {
		t.Fatal(err)
	}
}

func TestOnTheRealOne(t *testing.T) {
	server := latchkeytest.NewServer(t, latchkeytest.OnRedis(os.Getenv("TEST_REDIS"))) // empty: embedded
	lock, err := rlock.New(server.Open(latchkey.WithLease(time.Second)), "orders:42")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Do(t.Context(), charge); err != nil {
		t.Fatal(err)
	}
}

func TestWithMiniredis(t *testing.T) {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // before the first key
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := latchkey.Open("redis://" + server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock, err := rlock.New(latchkeytest.Open(t), "orders:42")
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Do(t.Context(), func(ctx context.Context, hold *latchkey.Hold) error {
			time.Sleep(10 * time.Minute) // it is renewed
			return charge(ctx, hold)
		}); err != nil {
			t.Fatal(err)
		}
	})
}
