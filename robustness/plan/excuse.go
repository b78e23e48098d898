package plan

import "time"

// Violation is something that must not be.
type Violation struct{ Kind, Text string }

// Unavailable is the kind of a violation that a machine explains which stands still.
const Unavailable = "unavailable"

// Excuse is what a fault explains. What is not named here is a violation also while the fault lasts.
type Excuse struct {
	// Overlap: two may trust a lock, or more permits than there are, and tokens may be out of order, from the
	// begin of the fault until so long after its end. 0: never.
	Overlap time.Duration
	// Order: waiters may be overtaken.
	Order bool
	// Grants may take so much longer, counted from the end of the fault. What is free then has an owner.
	Recovers time.Duration
	// Counts of plain permits and latches are lost, and barriers.
	Counts bool
	// Errors that callers may see, by a part of their text.
	Errors []string
}

// Window is when a fault lasted. Object is -1 when it concerned all.
type Window struct {
	Name       string
	Object     int64
	Begin, End int64
	Excuses    Excuse
}
