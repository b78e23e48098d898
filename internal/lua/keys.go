package lua

import (
	"errors"
	"fmt"
	"strings"
)

// MaxName is the greatest length of a lock's name in bytes, with the client's key prefix.
const MaxName = 1024

// ErrName is returned for a name that cannot be a key.
var ErrName = errors.New("invalid name")

// Lock is where one lock lives in Redis. All its keys and channels share one hash slot.
type Lock struct {
	keys  [3]string // lock, queue, token
	probe string
	inbox string // prefix of inbox channels
	verb  string
}

// NewLock validates the name and returns its keys. Clients of a cluster use sharded pub/sub, where a message must share
// the slot of the lock, so that they have an inbox for each lock instead of one for all.
func NewLock(name string, sharded bool) (*Lock, error) {
	if err := validate(name); err != nil {
		return nil, err
	}
	l := &Lock{
		keys:  [3]string{name, companion("latchkey_queue", name), companion("redisson_lock_token", name)},
		probe: companion("latchkey_probe", name),
		inbox: Inbox(""),
		verb:  "PUBLISH",
	}
	if sharded {
		l.inbox = companion("latchkey_inbox", name) + ":"
		l.verb = "SPUBLISH"
	}
	return l, nil
}

// Name is the lock's own key.
func (l *Lock) Name() string { return l.keys[0] }

// Keys returns the keys of the lock, its queue and its token.
func (l *Lock) Keys() (lock, queue, token string) { return l.keys[0], l.keys[1], l.keys[2] }

// Inbox is the channel on which the client hears what concerns it and this lock.
func (l *Lock) Inbox(client string) string { return l.inbox + client }

// Inbox is the one channel of a client that is not a cluster's.
func Inbox(client string) string { return "latchkey_inbox:" + client }

func (l *Lock) sharded() bool { return l.verb == "SPUBLISH" }

// companion follows Redisson's rule, so that a lock and its companions share a slot.
func companion(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}

// validate refuses names whose companions would not share their slot: Redis hashes what stands between the first { and
// the next }, or the whole name when that is nothing.
func validate(name string) error {
	if name == "" {
		return fmt.Errorf("%w: it is empty", ErrName)
	}
	if len(name) > MaxName {
		return fmt.Errorf("%w: it has %d bytes, more than %d", ErrName, len(name), MaxName)
	}
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
		return fmt.Errorf("%w: the braces of %q are not balanced", ErrName, name)
	}
	if open := strings.Index(name, "{"); open >= 0 && strings.HasPrefix(name[open:], "{}") {
		return fmt.Errorf("%w: the first pair of braces in %q is empty", ErrName, name)
	}
	if name[0] == '{' && strings.Index(name, "}") == len(name)-1 {
		return fmt.Errorf("%w: %q would share its queue with the name between the braces", ErrName, name)
	}
	return nil
}
