package latchkeytest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// nest takes locks, each inside the one before, and gives all back.
func nest(t testing.TB, ctx context.Context, c *latchkey.Client, names ...string) {
	t.Helper()
	if len(names) == 0 {
		return
	}
	ok(t, newLock(t, c, names[0]).Do(ctx, func(ctx context.Context, _ *latchkey.Hold) error {
		nest(t, ctx, c, names[1:]...)
		return nil
	}))
}

func newLock(t testing.TB, c *latchkey.Client, name string) *latchkey.Lock {
	t.Helper()
	l, err := rlock.New(c, name)
	ok(t, err)
	return l
}

// finds requires that a test finds one contradiction, and what the report says.
func finds(t *testing.T, test func(t testing.TB), says ...string) {
	t.Helper()
	inner := trial(t, test)
	if len(inner.errors) != 1 {
		t.Fatalf("%d findings: %q", len(inner.errors), inner.errors)
	}
	for _, text := range says {
		if !strings.Contains(inner.errors[0], text) {
			t.Fatalf("%q is not in %s", text, inner.errors[0])
		}
	}
}

func findsNothing(t *testing.T, test func(t testing.TB)) {
	t.Helper()
	if inner := trial(t, test); len(inner.errors) > 0 {
		t.Fatalf("%q", inner.errors)
	}
}

// sell and restock are two functions that take the same two locks, each in an order of its own.
func sell(ctx context.Context, order, stock *latchkey.Lock) error {
	return order.Do(ctx, func(ctx context.Context, _ *latchkey.Hold) error {
		return stock.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil })
	})
}

func restock(ctx context.Context, order, stock *latchkey.Lock) error {
	hold, err := stock.Lock(ctx)
	if err != nil {
		return err
	}
	inner, err := order.Lock(hold.Context())
	if err != nil {
		return err
	}
	_, err = inner.Unlock(ctx), hold.Unlock(ctx)
	return err
}

func TestOrderOfTwoFunctions(t *testing.T) {
	finds(t, func(t testing.TB) {
		c := latchkeytest.Open(t)
		ok(t, sell(t.Context(), newLock(t, c, "orders:1"), newLock(t, c, "stock:9")))
		ok(t, restock(t.Context(), newLock(t, c, "orders:2"), newLock(t, c, "stock:7")))
		ok(t, restock(t.Context(), newLock(t, c, "orders:3"), newLock(t, c, "stock:7"))) // and not again
	}, "stock:*, then orders:*", "orders:*, then stock:*",
		`"orders:2" at order_test.go:71, inside "stock:7" of order_test.go:67`,
		`"stock:9" at order_test.go:62, inside "orders:1" of order_test.go:61`)
}

// A transfer locks both accounts in the order in which its caller names them.
func TestOrderOfTransfers(t *testing.T) {
	transfer := func(t testing.TB, c *latchkey.Client, from, to string) { nest(t, t.Context(), c, from, to) }
	finds(t, func(t testing.TB) {
		c := latchkeytest.Open(t)
		transfer(t, c, "account:1", "account:2")
		transfer(t, c, "account:3", "account:2")
		transfer(t, c, "account:2", "account:1")
	}, "account:2, then account:1", "account:1, then account:2")
	finds(t, func(t testing.TB) {
		c := latchkeytest.Open(t)
		transfer(t, c, "account:1", "account:2")
		transfer(t, c, "account:2", "account:3")
		transfer(t, c, "account:3", "account:1")
	}, "account:1, then account:2", "account:2, then account:3", "account:3, then account:1")
	findsNothing(t, func(t testing.TB) { // this one sorts them
		c := latchkeytest.Open(t)
		transfer(t, c, "account:1", "account:2")
		transfer(t, c, "account:2", "account:3")
		transfer(t, c, "account:1", "account:3")
	})
}

func TestOrderOfThree(t *testing.T) {
	finds(t, func(t testing.TB) {
		c := latchkeytest.Open(t)
		nest(t, t.Context(), c, "a", "b")
		nest(t, t.Context(), c, "b", "c")
		nest(t, t.Context(), c, "c", "a")
	}, "a, then b", "b, then c", "c, then a")
}

// What blocks is reported as well, before it is over.
func TestOrderOfADeadlock(t *testing.T) {
	finds(t, func(t testing.TB) {
		c := latchkeytest.Open(t)
		a, err := newLock(t, c, "a").Lock(t.Context())
		ok(t, err)
		b, err := newLock(t, c, "b").Lock(t.Context())
		ok(t, err)
		ctx, cancel := context.WithTimeout(a.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = newLock(t, c, "b").Lock(ctx)
		is(t, err, context.DeadlineExceeded)
		_, err = newLock(t, c, "a").TryLockFor(b.Context(), 50*time.Millisecond)
		is(t, err, latchkey.ErrNotAcquired)
		ok(t, a.Unlock(t.Context()))
		ok(t, b.Unlock(t.Context()))
	}, "a, then b", "b, then a")
}

func TestOrderOfAttempts(t *testing.T) {
	try := func(t testing.TB, c *latchkey.Client, outer, inner string) {
		nestTry := func(ctx context.Context, _ *latchkey.Hold) error {
			return newLock(t, c, inner).TryDo(ctx, func(context.Context, *latchkey.Hold) error { return nil })
		}
		ok(t, newLock(t, c, outer).Do(t.Context(), nestTry))
	}
	findsNothing(t, func(t testing.TB) {
		c := latchkeytest.Open(t)
		nest(t, t.Context(), c, "a", "b")
		try(t, c, "b", "a") // it does not wait
	})
	finds(t, func(t testing.TB) { // what is asked for inside an attempt waits
		c := latchkeytest.Open(t)
		nest(t, t.Context(), c, "a", "b")
		ok(t, newLock(t, c, "b").TryDo(t.Context(), func(ctx context.Context, _ *latchkey.Hold) error {
			nest(t, ctx, c, "a")
			return nil
		}))
	}, "a, then b", "b, then a")
}

func TestOrderOfReentry(t *testing.T) {
	findsNothing(t, func(t testing.TB) {
		nest(t, t.Context(), latchkeytest.Open(t), "a", "b", "a", "b")
	})
}

// The names of a multi-lock have no order, and all come after the hold outside.
func TestOrderOfSeveral(t *testing.T) {
	several := func(t testing.TB, ctx context.Context, c *latchkey.Client, inside func(context.Context), names ...string) {
		var locks []*latchkey.Lock
		for _, name := range names {
			locks = append(locks, newLock(t, c, name))
		}
		all, err := multilock.New(locks...)
		ok(t, err)
		ok(t, all.Do(ctx, func(ctx context.Context, _ *multilock.Hold) error { inside(ctx); return nil }))
	}
	findsNothing(t, func(t testing.TB) {
		c := latchkeytest.Open(t)
		several(t, t.Context(), c, func(context.Context) {}, "b", "a")
		nest(t, t.Context(), c, "b", "a")
	})
	for _, last := range []string{"a", "b"} {
		finds(t, func(t testing.TB) {
			c := latchkeytest.Open(t)
			nest(t, t.Context(), c, last, "outside")
			ok(t, newLock(t, c, "outside").Do(t.Context(), func(ctx context.Context, _ *latchkey.Hold) error {
				several(t, ctx, c, func(context.Context) {}, "b", "a")
				return nil
			}))
		}, "outside, then "+last, last+", then outside")
		finds(t, func(t testing.TB) {
			c := latchkeytest.Open(t)
			nest(t, t.Context(), c, "inside", last)
			several(t, t.Context(), c, func(ctx context.Context) { nest(t, ctx, c, "inside") }, "b", "a")
		}, "inside, then "+last, last+", then inside")
	}
}

func TestOrderOfReadersAndPermits(t *testing.T) {
	finds(t, func(t testing.TB) {
		c := latchkeytest.Open(t)
		a, err := rwlock.New(c, "a")
		ok(t, err)
		b, err := rwlock.New(c, "b")
		ok(t, err)
		nothing := func(context.Context, *latchkey.Hold) error { return nil }
		ok(t, a.Read().Do(t.Context(), func(ctx context.Context, _ *latchkey.Hold) error { return b.Read().Do(ctx, nothing) }))
		ok(t, b.Read().Do(t.Context(), func(ctx context.Context, _ *latchkey.Hold) error { return a.Read().Do(ctx, nothing) }))
	}, "a, then b", "b, then a")
	finds(t, func(t testing.TB) {
		c := latchkeytest.Open(t)
		permits, err := semaphore.New(c, "permits", semaphore.WithCapacity(2))
		ok(t, err)
		ok(t, permits.Do(t.Context(), 1, func(ctx context.Context, _ *semaphore.Permits) error { nest(t, ctx, c, "a"); return nil }))
		ok(t, newLock(t, c, "a").Do(t.Context(), func(ctx context.Context, _ *latchkey.Hold) error {
			return permits.Do(ctx, 1, func(context.Context, *semaphore.Permits) error { return nil })
		}))
	}, "permits, then a", "a, then permits")
}

func TestOrderOptions(t *testing.T) {
	wrong := func(opts ...latchkeytest.Option) func(t testing.TB) {
		return func(t testing.TB) {
			c := latchkeytest.NewServer(t, opts...).Open()
			nest(t, t.Context(), c, "a:1", "b:1")
			nest(t, t.Context(), c, "b:2", "a:2")
		}
	}
	finds(t, wrong())
	findsNothing(t, wrong(latchkeytest.WithoutOrder()))
	findsNothing(t, wrong(latchkeytest.WithClass(func(name string) string { return name })))
	one := func(first, second string, opts ...latchkeytest.Option) func(t testing.TB) {
		return func(t testing.TB) { nest(t, t.Context(), latchkeytest.NewServer(t, opts...).Open(), first, second) }
	}
	findsNothing(t, one("x", "y"))
	findsNothing(t, one("y", "x")) // another test
	findsNothing(t, one("x", "y", latchkeytest.AcrossTests()))
	finds(t, one("y", "x", latchkeytest.AcrossTests()))
}

// The hooks of a program are called as without the kit.
func TestOrderBesideAnObserver(t *testing.T) {
	var acquired, released []string
	finds(t, func(t testing.TB) {
		c := latchkeytest.NewServer(t).Open(latchkey.WithObserver(latchkey.Observer{
			Acquired: func(e latchkey.Event) { acquired = append(acquired, e.Name) },
			Released: func(e latchkey.Event) { released = append(released, e.Name) },
		}))
		nest(t, t.Context(), c, "a", "b")
		nest(t, t.Context(), c, "b", "a")
	})
	if fmt.Sprint(acquired, released) != "[a b b a] [b a a b]" {
		t.Fatal(acquired, released)
	}
}

// Programs that keep to an order are not reported, whatever else they do.
func TestOrderOfCorrectPrograms(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	kinds := []string{"tenant", "account", "order", "stock", "invoice"}
	const orders = 5
	edges, began := 0, time.Now()
	inner := trial(t, func(t testing.TB) {
		c := latchkeytest.Open(t)
		for n := range 1000 {
			// Some programs have an order of the kinds of their own. Each takes several of a kind by their numbers.
			order := rand.New(rand.NewPCG(seed, uint64(n%orders))).Perm(len(kinds))
			program(t, t.Context(), c, random, func(place int) string {
				return fmt.Sprintf("%s-%s:%d", letters(n%orders), kinds[order[place/10]], place%10)
			}, -1, &edges)
		}
	})
	if len(inner.errors) > 0 {
		t.Fatalf("seed %d: %q", seed, inner.errors)
	}
	t.Logf("%d locks inside others in %v", edges, time.Since(began).Round(time.Millisecond))
	if edges < 1000 {
		t.Fatalf("only %d locks were taken inside others", edges)
	}
}

// program takes locks whose places grow, re-enters, and tries some that it must not wait for.
func program(t testing.TB, ctx context.Context, c *latchkey.Client, random *rand.Rand, name func(int) string, last int, edges *int) {
	for place := last + 1 + random.IntN(20); place < 50; place += 10 + random.IntN(40) {
		ok(t, lingering(t, c, name(place)).Do(ctx, func(ctx context.Context, _ *latchkey.Hold) error {
			if last >= 0 {
				*edges++
				if random.IntN(3) == 0 {
					ok(t, lingering(t, c, name(last)).Do(ctx, func(context.Context, *latchkey.Hold) error { return nil }))
				}
				if free := random.IntN(50); free < last {
					if hold, err := lingering(t, c, name(free)).TryLock(ctx); err == nil {
						ok(t, hold.Unlock(ctx))
					}
				}
			}
			program(t, ctx, c, random, name, place, edges)
			return nil
		}))
	}
}

// lingering returns a lock that is taken again without a command: so the programs take no time.
func lingering(t testing.TB, c *latchkey.Client, name string) *latchkey.Lock {
	t.Helper()
	l, err := rlock.New(c, name, rlock.WithLinger(time.Minute))
	ok(t, err)
	return l
}

// letters names a number without digits.
func letters(n int) string {
	return strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprint(n))
}
