package lua

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxName is the greatest length of a name in bytes, with the client's key prefix.
const MaxName = 1024

// ErrName is returned for a name that cannot be a key.
var ErrName = errors.New("invalid name")

// Family is what the scripts make of a name.
type Family uint8

// The families.
const (
	Locks     Family = iota // one owner at a time
	Leased                  // a semaphore whose permits have holders
	Plain                   // a semaphore that only counts
	ReadWrite               // one writer, or any number of readers
	Latch                   // releases all its waiters when a count is zero
	Barrier                 // releases all its waiters when all parties have arrived
	Fence                   // a key of the user's, which tokens guard
	Leader                  // who leads: the holder of the lock of the same name
	RunOnce                 // what is run once: its lock is one of the family Locks
	RunShared               // what is run once for all that wait now, in the same way
	RunTicks                // what is run once a tick, in the same way
	Pauses                  // that no run of a name begins, nor a term
	families                // how many families there are
)

// String is the name of the primitive.
func (f Family) String() string {
	return [families]string{
		Locks: "lock", Leased: "semaphore", Plain: "counting", ReadWrite: "rwlock", Latch: "latch", Barrier: "barrier",
		Fence: "fence", Leader: "leader",
		RunOnce: "once", RunShared: "share", RunTicks: "every", Pauses: "pause",
	}[f]
}

// Keys is where one primitive lives in Redis. All its keys and channels share one hash slot.
type Keys struct {
	family  Family
	variant variant  // of the scripts
	keys    []string // those of the family's scripts
	leases  []string // the keys that a renewal names
	done    int      // which of keys is the prefix of records; 0: none
	probe   string
	inbox   string // prefix of inbox channels
	news    string // channel for all waiters of a latch or barrier
}

// shape says of a key its place in Keys, its type, and what it is to the primitive.
type shape struct {
	key        int
	kind, role string
}

// shapes are those of the keys that NewKeys makes. Channels and prefixes of other keys have none.
var shapes = [families][]shape{
	Locks: {{0, "hash", "a lock"}, {1, "list", "the queue"}, {2, "string", "the fencing token"}},
	Leased: {
		{0, "string", "a semaphore"}, {1, "list", "the queue"}, {2, "string", "the fencing token"},
		{5, "zset", "the leases"}, {6, "hash", "the holders"},
	},
	Plain: {{0, "string", "a semaphore"}, {1, "list", "the queue"}, {2, "string", "the fencing token"}},
	ReadWrite: {
		{0, "hash", "a read-write lock"}, {1, "list", "the queue"}, {2, "string", "the fencing token"},
		{3, "hash", "the state"},
	},
	Fence:     {{1, "string", "the greatest token"}},
	Leader:    {{0, "hash", "a lock"}, {1, "list", "the queue"}, {2, "hash", "who leads"}, {3, "hash", "the pause"}},
	Latch:     {{0, "string", "a latch"}, {1, "hash", "the latch's record"}},
	Barrier:   {{0, "hash", "a barrier"}, {1, "zset", "the arrivals"}, {3, "zset", "the members"}},
	RunOnce:   {{0, "hash", "a lock"}, {1, "hash", "the runs"}, {2, "hash", "the pause"}},
	RunShared: {{0, "hash", "a lock"}, {1, "hash", "the runs"}, {2, "hash", "the pause"}},
	RunTicks:  {{0, "hash", "a lock"}, {1, "hash", "the ticks"}, {2, "hash", "the pause"}, {3, "list", "the last runs"}},
	Pauses:    {{1, "hash", "the pause"}},
}

// NewKeys validates the name and returns its keys. sharded is for clients of a cluster: they use sharded
// pub/sub. There, a channel must share the slot of the name, so a client has an inbox for each name instead
// of one for all.
func NewKeys(family Family, name string, sharded bool) (*Keys, error) {
	if err := validate(name); err != nil {
		return nil, err
	}
	k := &Keys{family: family, variant: variantOf(name, sharded), probe: companion("latchkey_probe", name)}
	k.keys = []string{name}
	for i, p := range parts[family] {
		k.keys = append(k.keys, p.of(name, sharded))
		if p.local == "DONE" {
			k.done = i + 1
		}
	}
	if p := inboxes[family]; p.of != nil {
		k.inbox = p.of(name, sharded)
	}
	if p := news[family]; p.of != nil {
		k.news = p.of(name, sharded)
	}
	switch family {
	case Locks:
		k.leases = k.keys[:1]
	case ReadWrite:
		k.leases = []string{name, k.keys[3]}
	case Leased:
		k.leases = k.keys[5:7]
	}
	return k, nil
}

// TakesTurns has its scripts take turns with processes of Redisson, if those may have the name too: see
// shared/turns.lua. It is called before any script runs.
func (k *Keys) TakesTurns() {
	if released[k.family].of != nil {
		k.variant |= redisson
	}
}

// Ear is a channel to which each client listens that listens to [Keys.Released] in order to take turns.
func (k *Keys) Ear() string { return ear.of(k.keys[0], k.sharded()) }

// Name is the key that has the name itself.
func (k *Keys) Name() string { return k.keys[0] }

// Family is that of its scripts.
func (k *Keys) Family() Family { return k.family }

// All returns the keys that the scripts name. The first is the name itself. Of a lock or semaphore, the queue
// and the token follow.
func (k *Keys) All() []string { return slices.Clone(k.keys) }

// Inbox is the channel on which a client hears what concerns it and this name.
func (k *Keys) Inbox(client string) string { return k.inbox + client }

// NameBeside returns the name that a key stands beside, as its queue or token. It reports false for all keys
// that stand beside none, and for records of repeated commands.
func NameBeside(key string) (string, bool) {
	_, rest, _ := strings.Cut(key, ":")
	for _, name := range []string{strings.TrimSuffix(strings.TrimPrefix(rest, "{"), "}"), rest} {
		for _, all := range parts {
			for _, p := range all {
				if p.local != "DONE" && p.local != "CHANNEL" && name != "" && p.of(name, false) == key && validate(name) == nil {
					return name, true
				}
			}
		}
	}
	return "", false
}

// Released is the channel on which a release is announced, where that is asked for: Redisson's. It is for
// locks and semaphores.
func (k *Keys) Released() string { return released[k.family].of(k.keys[0], k.sharded()) }

// News is the channel on which all waiters of a latch or barrier hear of changes.
func (k *Keys) News() string { return k.news }

// latchNews is Redisson's channel, which always has braces around the name. In a cluster, that can be another
// slot than the name's. Then no client of Redisson can use the name, and the channel is one of ours in the
// right slot.
func latchNews(name string, sharded bool) string {
	const prefix = "redisson_countdownlatch__channel__"
	if sharded && strings.Contains(name, "{") {
		return companion(prefix, name)
	}
	return prefix + "{" + name + "}"
}

// Inbox is the one inbox of a client that is not a cluster's.
func Inbox(client string) string { return "latchkey_inbox:" + client }

func (k *Keys) sharded() bool { return k.variant&sharded != 0 }

// companion is Redisson's rule for a key that shares the slot of a name.
func companion(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

// suffixed is Redisson's other rule for such a key.
func suffixed(name, suffix string) string {
	if strings.Contains(name, "{") {
		return name + ":" + suffix
	}
	return "{" + name + "}:" + suffix
}

// ValidPrefix returns an error that matches [ErrName] for a prefix with which no name can be a key, or whose
// braces are not its own.
func ValidPrefix(prefix string) error {
	if len(prefix) >= MaxName {
		return fmt.Errorf("%w: the prefix has %d bytes, so that no name has room in %d", ErrName, len(prefix), MaxName)
	}
	return validateBraces(prefix)
}

// validate refuses names whose companions would not share their slot. Redis hashes what stands between the
// first { and the next }, or the whole name when there is nothing between them.
func validate(name string) error {
	if name == "" {
		return fmt.Errorf("%w: it is empty", ErrName)
	}
	if len(name) > MaxName {
		return fmt.Errorf("%w: it has %d bytes, more than %d", ErrName, len(name), MaxName)
	}
	if err := validateBraces(name); err != nil {
		return err
	}
	if name[0] == '{' && strings.Index(name, "}") == len(name)-1 {
		return fmt.Errorf("%w: %q would share its queue with the name between the braces", ErrName, Brief(name))
	}
	return nil
}

func validateBraces(name string) error {
	depth := 0
	for _, r := range name {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 {
		return fmt.Errorf("%w: the braces of %q are not balanced", ErrName, Brief(name))
	}
	if open := strings.Index(name, "{"); open >= 0 && strings.HasPrefix(name[open:], "{}") {
		return fmt.Errorf("%w: the first pair of braces in %q is empty", ErrName, Brief(name))
	}
	return nil
}

// maxBrief is how many bytes of a name an error has.
const maxBrief = 100

// Brief returns a name as errors have it: its beginning, if it is long.
func Brief(name string) string {
	if len(name) <= maxBrief {
		return name
	}
	end := maxBrief
	for end > maxBrief-utf8.UTFMax && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}

// ClientRecord is the key under which a client tells who it is. name is its prefix, with its id.
func ClientRecord(name string) string { return companion("latchkey_client", name) }

// ForcedRecord is the key that says who took the lock of a name away last. name has the client's prefix.
func ForcedRecord(name string) string { return companion("latchkey_forced", name) }
