package retry

import "time"

// Hints bounds what is asked because of messages that something may have changed. Each user who may publish can send
// them, so they need not be true. The zero value is ready. The caller guards it.
type Hints struct{ inVain int }

// HintPause is between two questions once mostInVain in a row have brought nothing.
const (
	HintPause  = 10 * time.Millisecond
	mostInVain = 32
)

// Ask reports whether a hint is followed at once, and not after a pause.
func (h *Hints) Ask() bool {
	if h.inVain < mostInVain {
		h.inVain++
		return true
	}
	return false
}

// Proved says that something has changed.
func (h *Hints) Proved() { h.inVain = 0 }
