// Package oracle has rules of primitives that several tests judge by: what a command does, and what it replies.
package oracle

import (
	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
)

// Latch is a latch of package countdown without a time to live. The zero value is not set. Counted has a bit for
// each participant that has counted down.
type Latch struct {
	Status  countdown.Status
	Count   int
	Counted int64
}

// Set is TrySetCount, or with again Rearm.
func (l Latch) Set(n int, again bool) (after Latch, done bool) {
	if l.Status == countdown.Shut || l.Status == countdown.Open && !again {
		return l, false
	}
	return Latch{Status: countdown.Shut, Count: n}, true
}

// CountDown is CountDownN. If a bit is given, it is CountDownAs of the participant with that bit.
func (l Latch) CountDown(n int, bit int64) (after Latch, tally countdown.Tally, err error) {
	switch {
	case l.Status == countdown.NotSet:
		return l, tally, countdown.ErrNotSet
	case l.Status == countdown.Open:
		return l, tally, nil
	case l.Counted&bit != 0:
		return l, countdown.Tally{Remaining: l.Count}, nil
	case n > l.Count:
		return l, tally, latchkey.ErrInvalid
	case n == l.Count:
		return Latch{Status: countdown.Open, Counted: l.Counted | bit}, countdown.Tally{Counted: true}, nil
	}
	l.Count, l.Counted = l.Count-n, l.Counted|bit
	return l, countdown.Tally{Remaining: l.Count, Counted: true}, nil
}

// Delete is Delete.
func (l Latch) Delete() (after Latch, existed bool) { return Latch{}, l.Status != countdown.NotSet }
