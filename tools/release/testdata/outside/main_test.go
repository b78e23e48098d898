package main

import (
	"errors"
	"testing"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
	"github.com/latchkey-go/latchkey/rlock"
)

func TestCharge(t *testing.T) {
	hold := latchkeytest.Hold(t, "orders:42")
	if err := charge(hold.Context(), hold); err != nil {
		t.Fatal(err)
	}
	latchkeytest.Lose(t, hold)
	if err := charge(hold.Context(), hold); !errors.Is(err, latchkey.ErrLost) {
		t.Fatalf("the lock is lost, and charge says %v", err)
	}
}

func TestOutage(t *testing.T) {
	server := latchkeytest.NewServer(t)
	lock, err := rlock.New(server.Open(), "orders:42")
	if err != nil {
		t.Fatal(err)
	}
	server.Down()
	if _, err := lock.TryLock(t.Context()); !errors.Is(err, latchkey.ErrUnavailable) {
		t.Fatalf("Redis is away, and TryLock says %v", err)
	}
	server.Up()
	if err := lock.Do(t.Context(), charge); err != nil {
		t.Fatal(err)
	}
}
