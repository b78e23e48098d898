package identity

// Wait is what a record says of a wait that lasts while its caller holds something: the context of the wait
// is derived from that of a hold. So what the caller holds is not given back before the wait ends.
type Wait struct {
	Key     Name   `json:"k"` // of the lock, with the prefix
	Since   int64  `json:"s"` // µs since 1970, by the clock of the client: it is told unchanged, because it tells waits apart
	Note    string `json:"note,omitempty"`
	Checked bool   `json:"c,omitempty"` // it ends when it is the youngest of a circle
	Holds   []Held `json:"h"`
}

// Held is a lock that is held meanwhile.
type Held struct {
	Key   Name   `json:"k"` // with the prefix
	Owner string `json:"o"` // the client's id and the number
}

// The bounds of what a record says of waits.
const (
	MaxWaits = 100
	MaxHolds = 16 // of one wait: the innermost
	// MaxWaitsSize is how many bytes of all of them are told.
	MaxWaitsSize = 32 << 10
)

// Size is how long what is told of a wait is, but for what JSON adds.
func (w *Wait) Size() int {
	n := len(w.Key) + len(w.Note)
	for _, h := range w.Holds {
		n += len(h.Key) + len(h.Owner)
	}
	return n
}

// clip bounds what a record says that others have written.
func (w *Wait) clip() {
	w.Note = Clip(w.Note, MaxNote)
	if len(w.Holds) > MaxHolds {
		w.Holds = w.Holds[:MaxHolds]
	}
}

// HasHeld reports whether one of these owners has the key, and the wait keeps it.
func (w *Wait) HasHeld(key string, owner func(owner string) bool) bool {
	for _, h := range w.Holds {
		if string(h.Key) == key && owner(h.Owner) {
			return true
		}
	}
	return false
}
