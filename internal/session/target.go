package session

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
	"weak"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// Target is one name of one family on one client: commands go to a target. An engine's object for a name embeds the
// target, and [GetOrCreate] makes this object. Methods are safe for concurrent use.
type Target struct {
	// Client sends the commands.
	Client *Client
	// Keys are the keys of the name.
	Keys *lua.Keys
	// ServerClock is the clock of the server that has the name.
	ServerClock *clock.Clock
	// Floor is the highest token of the name that the client has seen; of a barrier, the highest generation. It
	// only grows: see [Raise].
	Floor *atomic.Int64

	slot   uint16
	hinted *time.Time // when the name's tokens last made the client read the clock; the clock's mutex guards it
}

// targetKey is the key by which the client finds a target. The families of one name exclude each other in Redis, but
// not here.
type targetKey struct {
	family lua.Family
	key    string
}

// entry is what the client has in use for a name and family.
type entry struct {
	value func() any    // returns the object that embeds the target; nil once that is collected
	floor *atomic.Int64 // the target's
}

// GetOrCreate returns the object that the client has for a name of a family. If the client has none, build makes the
// object of a target. build runs under the client's mutex, so it must not call the client. The object lives for as
// long as a primitive, a waiter or a hold refers to it. All calls with one family must have the same T. The error
// matches ErrInvalid, and is not wrapped.
func GetOrCreate[T any](c *Client, family lua.Family, name string, build func(Target) *T) (*T, error) {
	key := targetKey{family, c.Options.Prefix + name}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.targets[key]
	if before.value != nil { // then the name is valid
		if x, ok := before.value().(*T); ok {
			return x, nil
		}
	}
	keys, err := lua.NewKeys(family, key.key, c.Sharded)
	if err != nil {
		return nil, fail.Invalid("%w", err)
	}
	if c.Options.Redisson {
		keys.TakesTurns()
	}
	t := c.newTarget(key, keys, before.floor)
	x := build(t)
	c.targets[key] = entry{weakly(x), t.Floor}
	runtime.AddCleanup(x, collected, collection{weak.Make(c), key})
	return x, nil
}

// At returns the target of a key that is not of this library, and does not begin with the client's prefix. Each
// call makes a new target.
func (c *Client) At(keys *lua.Keys) *Target {
	return &Target{
		Client: c, Keys: keys, slot: c.Conn.Slot(keys), ServerClock: &clock.Clock{}, Floor: new(atomic.Int64), hinted: new(time.Time),
	}
}

// newTarget makes a target. The caller holds the mutex. floor is the floor of a target that is gone but not cleaned
// up yet, or nil.
func (c *Client) newTarget(key targetKey, keys *lua.Keys, floor *atomic.Int64) Target {
	if floor == nil {
		floor = new(atomic.Int64)
		floor.Store(c.floors.of(key))
	}
	t := Target{Client: c, Keys: keys, slot: c.Conn.Slot(keys), ServerClock: &c.clock, Floor: floor, hinted: new(time.Time)}
	if c.Sharded {
		t.ServerClock = &clock.Clock{} // each node has its own clock
	}
	return t
}

// weakly returns a function that returns x until x is collected, and nil after that.
func weakly[T any](x *T) func() any {
	pointer := weak.Make(x)
	return func() any {
		if x := pointer.Value(); x != nil {
			return x
		}
		return nil
	}
}

// collection is what a client has to forget. It does not keep the client alive: perhaps only the object that embeds
// the target still refers to the client.
type collection struct {
	client weak.Pointer[Client]
	key    targetKey
}

// collected runs when nothing refers any more to the object that a key led to. The key may lead to another object by
// now.
func collected(of collection) {
	c, key := of.client.Value(), of.key
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.targets[key]; ok && e.value() == nil {
		c.floors.keep(key, e.floor.Load())
		delete(c.targets, key)
	}
}

// inUse returns everything of type T that the client has for some name.
func inUse[T any](c *Client) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []T
	for _, e := range c.targets {
		if x, ok := e.value().(T); ok {
			all = append(all, x)
		}
	}
	return all
}

// Name returns the name with the client's key prefix: a key in Redis.
func (t *Target) Name() string { return t.Keys.Name() }

// Health returns the health of the part of the cluster that has the name; without a cluster, of the
// server.
func (t *Target) Health() *retry.Health { return t.Client.health[t.slot%healthParts] }

// Failed takes the error of a command that got no answer, or that Redis refused for now, and when the client sent the
// command. Probes follow until Redis answers.
func (t *Target) Failed(err error, sent time.Time) {
	t.Health().Failed(err, sent, t.Client.briefly(func(ctx context.Context) error { return t.Client.Conn.Probe(ctx, t.Keys) }))
}

// briefly returns a probe that the client gives up after the command timeout. If the user may not send the probe,
// Redis has answered: the commands that wait then learn why.
func (c *Client) briefly(probe func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, c.Options.CommandTimeout)
		defer cancel()
		if err := probe(ctx); !lua.Forbidden(err) {
			return err
		}
		return nil
	}
}

// Up returns when Redis is up, or with the cause when ctx or the client ends.
func (t *Target) Up(ctx context.Context) error { return t.Health().Wait(ctx) }

// Go is [Client.Go].
func (t *Target) Go(f func()) { t.Client.Go(f) }
