package latchkeytest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
	"github.com/latchkey-go/latchkey/rlock"
)

// charge is a function under test: it takes a hold.
func charge(ctx context.Context, _ *latchkey.Hold) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("nothing was charged: %w", context.Cause(ctx))
	}
	return nil
}

// run stands for "go test": it runs the tests of an example, and says what they say.
func run(tests ...func(t testing.TB)) {
	for _, test := range tests {
		inner := &tester{}
		inner.run(test)
		for _, text := range inner.errors {
			fmt.Println(text)
		}
	}
}

func ExampleHold() {
	run(func(t testing.TB) { // func TestCharge(t *testing.T)
		hold := latchkeytest.Hold(t, "orders:42")
		fmt.Println(charge(hold.Context(), hold))
		latchkeytest.Lose(t, hold)
		fmt.Println(errors.Is(charge(hold.Context(), hold), latchkey.ErrLost))
	})
	// Output:
	// <nil>
	// true
}

func ExampleServer_Pass() {
	run(func(t testing.TB) { // func TestTakeOver(t *testing.T)
		server := latchkeytest.NewServer(t)
		first, second := server.Open(), server.Open()
		lock, err := rlock.New(first, "orders:42")
		if err != nil {
			t.Fatalf("%v", err)
		}
		if _, err := lock.Lock(t.Context()); err != nil {
			t.Fatalf("%v", err)
		}
		server.Kill(first)
		lock, err = rlock.New(second, "orders:42")
		if err != nil {
			t.Fatalf("%v", err)
		}
		_, err = lock.TryLock(t.Context())
		fmt.Println(errors.Is(err, latchkey.ErrNotAcquired))
		server.Pass(latchkeyLease)
		hold, err := lock.TryLock(t.Context())
		fmt.Println(hold.Held(), err)
		if err := hold.Unlock(t.Context()); err != nil {
			t.Fatalf("%v", err)
		}
	})
	// Output:
	// true
	// true <nil>
}

func ExampleServer_Down() {
	run(func(t testing.TB) { // func TestOutage(t *testing.T)
		server := latchkeytest.NewServer(t)
		lock, err := rlock.New(server.Open(), "orders:42")
		if err != nil {
			t.Fatalf("%v", err)
		}
		server.Down()
		_, err = lock.TryLock(t.Context())
		fmt.Println(errors.Is(err, latchkey.ErrUnavailable))
		server.Up()
		fmt.Println(lock.Do(t.Context(), charge))
	})
	// Output:
	// true
	// <nil>
}

func ExampleClass() {
	fmt.Println(latchkeytest.Class("orders:42:lines:7"))
	// Output: orders:*:lines:*
}
