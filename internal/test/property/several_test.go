package property_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/contract"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
)

// several is the model of locks of all kinds that two clients take one by one and together, nested in each
// other, one attempt after the other.
type several struct {
	t       *testing.T
	random  *rand.Rand
	about   string
	clients [2]*latchkey.Client
	names   []*severalName
	groups  []*group // that are held
	story   []string
}

// severalName is one name with what is known of it. Each has a kind: those with two halves have a half for
// readers.
type severalName struct {
	name, kind    string
	alone, shares [2]*latchkey.Lock // of each client; shares: nil unless there are two halves
	writers       int               // holds of the one that holds alone
	readers       int               // holds of those that read
	token         int64             // the greatest
}

// member is a lock that is wanted: a name, or one half of it.
type member struct {
	*severalName
	reads bool
}

func (m member) lock(client int) *latchkey.Lock {
	if m.reads {
		return m.shares[client]
	}
	return m.alone[client]
}

func (m member) String() string {
	if m.reads {
		return m.name + ".read"
	}
	return m.name
}

// group is some locks in one hold: of a multi-lock, or of a lock alone.
type group struct {
	client  int
	parent  *group // whose context its own is derived from
	members []member
	inner   int // groups whose contexts are derived from its own
	hold    interface {
		Context() context.Context
		Held() bool
		Unlock(ctx context.Context) error
	}
}

// find returns how a group, or one that it is inside of, holds a name.
func (g *group) find(n *severalName) (m member, holds bool) {
	for ; g != nil; g = g.parent {
		if i := slices.IndexFunc(g.members, func(m member) bool { return m.severalName == n }); i >= 0 {
			return g.members[i], true
		}
	}
	return m, false
}

func newSeveral(t *testing.T, s *redistest.Server, seed uint64) *several {
	v := &several{t: t, random: rand.New(rand.NewPCG(seed, 0)), about: fmt.Sprintf("LATCHKEY_SEED=%d", seed)}
	t.Logf("%s", v.about)
	for n := range v.clients {
		c, err := rueidisclient.New(s.Option(), latchkey.WithLease(lease), latchkey.WithCommandTimeout(long))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		v.clients[n] = c
	}
	for i, kind := range []string{"rlock", "fairlock", "spinlock", "lingering", "write", "write", "write", "rlock", "write", "fairlock"} {
		n := &severalName{name: fmt.Sprint(i, kind), kind: kind}
		for at, c := range v.clients {
			kindOf := contract.EveryKind[kind]
			switch kind {
			case "lingering":
				kindOf = contract.Lingering(lease)
			case "write":
				var err error
				n.shares[at], err = contract.EveryKind["read"](c, n.name, 0)
				require.NoError(t, err)
			}
			var err error
			n.alone[at], err = kindOf(c, n.name, 0)
			require.NoError(t, err)
		}
		v.names = append(v.names, n)
	}
	return v
}

// String is how to do it again, and what was done.
func (v *several) String() string { return v.about + "\n" + strings.Join(v.story, "\n") + "\n" }

// expect says what an attempt comes to: nil, or the sentinel of its error.
func (v *several) expect(members []member, parent *group) error {
	var busy error
	for _, m := range members {
		held, inside := parent.find(m.severalName)
		switch {
		case inside && held.reads && !m.reads:
			return rwlock.ErrUpgrade
		case inside:
		case m.writers > 0, m.readers > 0 && !m.reads:
			busy = latchkey.ErrNotAcquired
		}
	}
	return busy
}

// step takes some locks, gives some back, or has one that writes go on as one that reads.
func (v *several) step() {
	switch n := v.random.IntN(10); {
	case n < 5 || len(v.groups) == 0:
		v.take()
	case n < 9:
		v.giveBack(v.random.IntN(len(v.groups)))
	default:
		v.downgrade(v.groups[v.random.IntN(len(v.groups))])
	}
	for _, n := range v.names {
		state, err := n.alone[v.random.IntN(2)].Inspect(v.t.Context())
		require.NoError(v.t, err, v.about)
		held := state.Holder.Owner != "" && state.Holder.Mode != latchkey.ModeLinger && state.Holder.Mode != latchkey.ModeMayLinger || n.kind == "lingering" && n.writers > 0
		require.Equal(v.t, n.writers+n.readers > 0, held, "%v: %s: %+v", v, n.name, state)
		require.Zero(v.t, state.Waiting, v.about)
	}
	for _, g := range v.groups {
		require.True(v.t, g.hold.Held(), "%v: %v", v, g.members)
	}
}

func (v *several) take() {
	client, ctx := v.random.IntN(2), v.t.Context()
	var parent *group
	if len(v.groups) > 0 && v.random.IntN(3) == 0 {
		parent = v.groups[v.random.IntN(len(v.groups))]
		client, ctx = parent.client, parent.hold.Context()
	}
	var members []member
	for _, i := range v.random.Perm(len(v.names))[:1+v.random.IntN(len(v.names))] {
		n := v.names[i]
		members = append(members, member{n, n.shares[0] != nil && v.random.IntN(2) == 0})
	}
	if v.random.IntN(3) == 0 {
		members = members[:1]
	}
	want := v.expect(members, parent)
	// One that lingers is asked for, and its process may be slow to answer: who does not wait may be refused.
	waits := want == nil && (v.random.IntN(2) == 0 || slices.ContainsFunc(members, func(m member) bool { return m.kind == "lingering" }))
	g := &group{client: client, parent: parent, members: members}
	tokens, err := g.acquire(ctx, waits)
	v.story = append(v.story, fmt.Sprintf("client %d takes %v inside %v, waits %v: %v", client, members, parent != nil, waits, err))
	if want != nil {
		require.ErrorIs(v.t, err, want, "%v", v)
		return
	}
	require.NoError(v.t, err, "%v", v)
	for _, m := range members {
		switch held, inside := parent.find(m.severalName); {
		case inside && !held.reads:
			m.writers++
		case m.reads:
			require.GreaterOrEqual(v.t, tokens[m.name], m.token, "%s: %v", v.about, m)
			m.readers++
		default:
			require.Greater(v.t, tokens[m.name], m.token, "%s: %v", v.about, m)
			m.writers++
		}
		m.token = max(m.token, tokens[m.name])
	}
	for i, m := range members { // whoever reads inside of what it writes goes on to write
		if held, inside := parent.find(m.severalName); inside {
			members[i].reads = held.reads
		}
	}
	if parent != nil {
		parent.inner++
	}
	v.groups = append(v.groups, g)
}

// acquire makes one attempt, or waits for what is free at once.
func (g *group) acquire(ctx context.Context, waits bool) (tokens map[string]int64, err error) {
	if len(g.members) == 1 {
		m := g.members[0]
		var h *latchkey.Hold
		if waits {
			h, err = m.lock(g.client).TryLockFor(ctx, long)
		} else {
			h, err = m.lock(g.client).TryLock(ctx)
		}
		g.hold = h
		return map[string]int64{m.name: h.Token()}, err
	}
	locks := make([]*latchkey.Lock, len(g.members))
	for i, m := range g.members {
		locks[i] = m.lock(g.client)
	}
	l, err := multilock.New(locks...)
	if err != nil {
		return nil, err
	}
	var h *multilock.Hold
	if waits {
		h, err = l.TryLockFor(ctx, long)
	} else {
		h, err = l.TryLock(ctx)
	}
	g.hold = h
	return h.Tokens(), err
}

// giveBack unlocks a group, unless others are inside of it: their contexts would end.
func (v *several) giveBack(i int) {
	g := v.groups[i]
	if g.inner > 0 {
		return
	}
	v.story = append(v.story, fmt.Sprintf("client %d gives back %v", g.client, g.members))
	require.NoError(v.t, g.hold.Unlock(v.t.Context()), "%v", v)
	for _, m := range g.members {
		if m.reads {
			m.readers--
		} else {
			m.writers--
		}
	}
	if g.parent != nil {
		g.parent.inner--
	}
	v.groups = slices.Delete(v.groups, i, i+1)
}

// downgrade has a write hold that was taken by itself, and that nobody re-entered, go on reading.
func (v *several) downgrade(g *group) {
	hold, single := g.hold.(*latchkey.Hold)
	if !single {
		return
	}
	m := g.members[0]
	err := rwlock.Downgrade(v.t.Context(), hold)
	v.story = append(v.story, fmt.Sprintf("client %d downgrades %v: %v", g.client, m, err))
	if m.kind != "write" || !m.reads && m.writers > 1 {
		require.ErrorIs(v.t, err, latchkey.ErrInvalid, v.about)
		return
	}
	require.NoError(v.t, err, v.about)
	if !m.reads {
		m.writers, m.readers = 0, 1
		g.members[0].reads = true
	}
}

// Locks of all kinds are taken one by one and together, by clients that hold others already, and each attempt
// comes to what is true of its locks one by one. A multi-lock of two halves of one client once did not.
func TestSeveralAtRandom(t *testing.T) {
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		v := newSeveral(t, s, redistest.Seed(t))
		for range redistest.Rounds(400, 20_000) {
			v.step()
		}
		for len(v.groups) > 0 {
			for i := len(v.groups) - 1; i >= 0; i-- {
				v.giveBack(i)
			}
		}
		for _, c := range v.clients {
			require.NoError(t, c.Shutdown(t.Context()))
		}
		redistest.OnlyExpiring(t, s.Client(t))
	})
}
