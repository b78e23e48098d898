package latchkeytest_test

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
	"github.com/latchkey-go/latchkey/rlock"
)

// A wait with a bound and a name alone are as a Do.
func TestOrderOfOtherDos(t *testing.T) {
	type work = func(context.Context, *latchkey.Hold) error
	ways := map[string]func(t testing.TB, ctx context.Context, c *latchkey.Client, name string, f work) error{
		"TryDoFor": func(t testing.TB, ctx context.Context, c *latchkey.Client, name string, f work) error {
			return newLock(t, c, name).TryDoFor(ctx, long, f)
		},
		"by name": func(_ testing.TB, ctx context.Context, c *latchkey.Client, name string, f work) error {
			return rlock.Do(ctx, c, name, f)
		},
	}
	for way, do := range ways {
		t.Run(way, func(t *testing.T) {
			finds(t, func(t testing.TB) {
				c := latchkeytest.Open(t)
				nest(t, t.Context(), c, "a", "b")
				ok(t, do(t, t.Context(), c, "b", func(ctx context.Context, _ *latchkey.Hold) error {
					return do(t, ctx, c, "a", func(context.Context, *latchkey.Hold) error { return nil })
				}))
			}, "a, then b", "b, then a")
		})
	}
}
