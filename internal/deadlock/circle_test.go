package deadlock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/internal/deadlock"
	"github.com/latchkey-go/latchkey/internal/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wait is one of a client for a key, while it holds others.
func wait(client, since int, key string, holds ...string) deadlock.Wait {
	w := deadlock.Wait{Wait: identity.Wait{Key: identity.Name(key), Since: int64(since)}, Who: deadlock.Party{Client: fmt.Sprint("c", client)}}
	for _, h := range holds {
		w.Holds = append(w.Holds, identity.Held{Key: identity.Name(h), Owner: fmt.Sprintf("c%d:%d", client, since)})
	}
	return w
}

// A circle of three is found from each of its waits, and by All once. The youngest that is checked is its
// victim.
func TestCircle(t *testing.T) {
	a, b, c := wait(1, 30, "y", "x"), wait(2, 10, "z", "y"), wait(3, 20, "x", "w", "z")
	aside := wait(4, 40, "x", "q")
	b.Checked, c.Checked = true, true
	circles := deadlock.All([]deadlock.Wait{a, aside, b, c})
	require.Len(t, circles, 1)
	circle := circles[0]
	require.Len(t, circle, 3)
	require.Equal(t, "x", circle.Held(0))
	require.True(t, circle.IsVictim(c), "it is the youngest that is checked")
	require.False(t, circle.IsVictim(a), "it is younger, and not checked")
	require.False(t, circle.IsVictim(b), "it is older")
	require.True(t, circle.Same(deadlock.Circle{c, a, b}))
	require.False(t, circle.Same(deadlock.Circle{c, a, aside}))
	require.False(t, circle.Same(circle[:2]))
	require.Empty(t, deadlock.All([]deadlock.Wait{a, aside, c}))
	_, found := deadlock.Circle{a}.Victim()
	require.False(t, found)

	circle[0].Who.Host, circle[0].Who.PID, circle[0].Who.Label, circle[0].Note = "web-1", 7, "billing\n", "order 42"
	text := circle.String(strings.ToUpper)
	require.True(t, strings.HasPrefix(text, `web-1:7 billing� holds "X" and waits for "Y" since 1970-01-01T00:00:00Z ("order 42"); c2 holds "Y" and waits for "Z" since `), text)
}

// One that waits for what it holds itself is a circle.
func TestCircleOfOne(t *testing.T) {
	self := wait(1, 1, "x", "x")
	require.Equal(t, []deadlock.Circle{{self}}, deadlock.All([]deadlock.Wait{self}))
}

// Of two that are equally old exactly one is the victim, whoever looks.
func TestOneVictim(t *testing.T) {
	a, b := wait(1, 5, "y", "x"), wait(2, 5, "x", "y")
	a.Checked, b.Checked = true, true
	for _, circle := range []deadlock.Circle{{a, b}, {b, a}} {
		require.NotEqual(t, circle.IsVictim(a), circle.IsVictim(b))
		require.Equal(t, deadlock.Circle{a, b}.IsVictim(a), circle.IsVictim(a))
	}
}

// A circle is found wherever there is one, and what is found is one.
func TestCircleIsFound(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(r, "waits")
		keys := rapid.IntRange(1, 8).Draw(r, "keys")
		key := func(label string) string { return fmt.Sprint("k", rapid.IntRange(1, keys).Draw(r, label)) }
		waits := make([]deadlock.Wait, n)
		taken := map[string]bool{}
		for i := range waits {
			var holds []string
			for range rapid.IntRange(1, 3).Draw(r, "holds") {
				if k := key("held"); !taken[k] {
					taken[k] = true
					holds = append(holds, k)
				}
			}
			waits[i] = wait(i, i, key("wanted"), holds...)
		}
		holder := map[string]int{}
		for i, w := range waits {
			for _, h := range w.Holds {
				holder[string(h.Key)] = i
			}
		}
		inCircle := func(i int) bool { // one holder a key: follow the only way
			at := i
			for range waits {
				next, held := holder[string(waits[at].Key)]
				if !held {
					return false
				}
				if at = next; at == i {
					return true
				}
			}
			return false
		}
		found := map[string]bool{}
		for _, circle := range deadlock.All(append([]deadlock.Wait{}, waits...)) {
			for i, w := range circle {
				found[w.Who.Client] = true
				if !w.HasHeld(circle.Held(i), func(string) bool { return true }) {
					r.Fatalf("%v does not hold %s", w, circle.Held(i))
				}
			}
		}
		for i, w := range waits {
			if inCircle(i) != found[w.Who.Client] {
				r.Fatalf("%d is in a circle: %v; found: %v; of %v", i, inCircle(i), found, waits)
			}
		}
	})
}

// A search of a large graph without a circle ends soon, and a circle that is too long is not found.
func TestSearchIsBounded(t *testing.T) {
	var waits []deadlock.Wait
	for layer := range 30 {
		for i := range 10 {
			w := wait(layer*100+i, layer*100+i, fmt.Sprint("layer", layer+1), fmt.Sprint("layer", layer))
			waits = append(waits, w)
		}
	}
	require.Empty(t, deadlock.All(waits))
	long := func(n int) (ring []deadlock.Wait) {
		for i := range n {
			ring = append(ring, wait(i, i, fmt.Sprint("k", (i+1)%n), fmt.Sprint("k", i)))
		}
		return ring
	}
	require.Len(t, deadlock.All(long(32)), 1)
	require.Empty(t, deadlock.All(long(33)))
}
