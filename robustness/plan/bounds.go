package plan

import "time"

// The bounds that docs/guarantees.md names.
const (
	AsksAgain = 2 * time.Second         // waiters ask every two seconds at least
	Noticed   = 2500 * time.Millisecond // a slot that has moved
	Settles   = 500 * time.Millisecond  // what reconnections and probes take beside that
)

// Answers is the shortest command timeout of a client.
const Answers = 700 * time.Millisecond

// MinHold is the shortest hold of the locks that have one.
const MinHold = 10 * time.Millisecond

// Attempts is how often what is done once fails at most.
const Attempts = 4

// Period is the period of jobs.
const Period = 50 * time.Millisecond
