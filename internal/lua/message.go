package lua

import (
	"strconv"
	"strings"
)

// Kind is what an inbox message says.
type Kind byte

// The kinds of messages. Each is written by one script, except Ping, which [Conn.Ping] sends, and an Ask that
// answers an Attempt, which [Conn.Answer] sends.
const (
	Unknown Kind = 0   // one of a later version: ask again
	Grant   Kind = 'g' // the waiter owns the lock; on the wire, each family has another letter
	Ask     Kind = 'a' // all waiters of this name must ask again: something happened to what they wait for
	Forced  Kind = 'f' // Redis took back every grant up to this token
	Want    Kind = 'w' // for an owner that hands on inside its process: the first of the others waits now
	Attempt Kind = 't' // for an owner that may linger: an attempt found its lock taken, and awaits an Ask
	Ends    Kind = 'l' // ask again in so many ms or sooner: a lease may end sooner than an earlier reply said
	Ping    Kind = 'p' // a health check
)

// Message is one message of an inbox.
type Message struct {
	Kind   Kind
	Family Family // Grant
	Number uint64 // of the tenure it is for, or of the ping
	Secret uint32 // only its client knows it, and users who can read what is in Redis or hear the inbox
	Owned         // Grant; Forced: the token alone
	Now    int64  // Grant: the server's clock in microseconds at the grant
	Lease  int64  // Grant: the lease until the first renewal; Ends: when to ask; both in ms
	Asker  string // Attempt: the owner id that wants the lock
	Name   string // the lock's key
}

// Owned is what a reply or a grant says to an owner.
type Owned struct {
	Token    int64 // the fencing token
	Reserved int64 // so many tokens after it are the owner's too
	Others   bool  // others wait; said only with Reserved
}

// ParseMessage reads what the scripts publish. What it cannot read is Unknown.
func ParseMessage(text string) (m Message) {
	version, rest, _ := strings.Cut(text, " ")
	letter, rest, found := strings.Cut(rest, " ")
	if !found || version != Version || len(letter) != 1 {
		return Message{}
	}
	kind, family := Kind(letter[0]), Locks
	switch kind {
	case 's':
		kind, family = Grant, Leased
	case 'c':
		kind, family = Grant, Plain
	case 'r':
		kind, family = Grant, ReadWrite
	}
	var count int
	switch kind {
	case Grant:
		count = 5
	case Ends, Forced:
		count = 1
	case Want, Ask, Attempt, Ping:
	default:
		return Message{}
	}
	id, rest, found := strings.Cut(rest, " ")
	n, secret, ok := parseNumber(id)
	if !ok || !found && kind != Ping {
		return Message{}
	}
	var numbers [5]int64
	for i := range count {
		text, after, found := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || !found || n < 0 || n > maxToken {
			return Message{}
		}
		numbers[i], rest = n, after
	}
	asker := ""
	if kind == Attempt {
		if asker, rest, found = strings.Cut(rest, " "); !found {
			return Message{}
		}
	}
	m = Message{Kind: kind, Asker: asker, Family: family, Number: n, Secret: secret, Name: rest}
	switch kind {
	case Grant:
		m.Owned = Owned{Token: numbers[0], Reserved: numbers[1], Others: numbers[2] != 0}
		m.Now, m.Lease = numbers[3], numbers[4]
	case Forced:
		m.Token = numbers[0]
	case Ends:
		m.Lease = numbers[0]
	}
	return m
}
