package terms

import (
	"math/bits"

	"github.com/latchkey-go/latchkey/internal/fail"
)

// Choice is a set of options: the options that a package has, or the options that were given.
type Choice uint16

// The options, each under the name that users know.
const (
	OptionLease      Choice = 1 << iota // WithLease
	OptionFixedLease                    // WithFixedLease
	OptionMinHold                       // WithMinHold
	OptionMaxHold                       // WithMaxHold
	OptionReentry                       // WithoutReentry
	OptionDeadlocks                     // WithDeadlockCheck
	OptionBudget                        // WithBudget
	OptionHandOff                       // WithoutLocalHandOff
	OptionLinger                        // WithLinger
	OptionBackoff                       // WithBackoff
	OptionUptime                        // WithUptime

	// OptionsCommon are the options of all locks on one server.
	OptionsCommon = OptionLease | OptionFixedLease | OptionMinHold | OptionMaxHold | OptionReentry | OptionDeadlocks
	// OptionsAll is all of them.
	OptionsAll = OptionUptime<<1 - 1
)

var choiceNames = [...]string{
	"WithLease", "WithFixedLease", "WithMinHold", "WithMaxHold", "WithoutReentry", "WithDeadlockCheck", "WithBudget", "WithoutLocalHandOff",
	"WithLinger", "WithBackoff", "WithUptime",
}

// String is the name of the first option of the set.
func (c Choice) String() string { return choiceNames[bits.TrailingZeros16(uint16(c))] }

func (c Choice) has(o Choice) bool { return c&o != 0 }

// Option sets one field of [Options]. A nil Option does nothing. The options of all packages are this interface, so
// one list serves several packages.
type Option interface{ SetLock(o *Options) }

// set is the only kind of Option.
type set struct {
	which Choice
	apply func(*Options)
}

func (s set) SetLock(o *Options) {
	if budgets := OptionBudget | OptionHandOff; budgets.has(s.which) {
		o.given &^= budgets // two options for one setting: the last counts
	}
	o.given |= s.which
	s.apply(o)
}

// Collect returns what options set, for package pkg, which has the options of has. [Options.Terms] refuses all other
// options.
func Collect[O Option](pkg string, has Choice, options []O) Options {
	if len(options) == 0 {
		return Options{}
	}
	var o Options // on the heap
	for _, option := range options {
		if any(option) != nil {
			option.SetLock(&o)
		}
	}
	if extra := o.given &^ has; extra != 0 {
		o.refused = fail.Invalid("%s has no option %v", pkg, extra)
	}
	return o
}
