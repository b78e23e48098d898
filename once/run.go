package once

import (
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
)

// MaxResult is the greatest length of a result in bytes.
const MaxResult = 64 << 10

// Run is what a function is told of its run. Its methods are safe for concurrent use. The zero value is not usable.
type Run struct {
	hold    *latchkey.Hold
	attempt int64
	tick    time.Time // of Every and At alone
	results bool      // there may be a result
	began   int64     // when the run began, by the server's clock in microseconds; 0: not told
	heard   time.Time // when this process got began, or later

	mu     sync.Mutex
	result []byte
	over   bool
}

// Token returns the fencing token: greater than the token of every earlier run of the name.
func (r *Run) Token() int64 { return r.hold.Token() }

// Hold returns the hold of the lock under which the function runs. The function must not unlock it.
func (r *Run) Hold() *latchkey.Hold { return r.hold }

// Attempt returns the number of this run, from 1. If it is more than 1, a run before it may have done a part of the
// work, or all of it.
func (r *Run) Attempt() int { return int(r.attempt) }

// Tick returns when the tick was due, by the server's clock and without the jitter. For New and Share it is the zero
// time.
func (r *Run) Tick() time.Time { return r.tick }

// SetResult sets what [Once.Result] returns once this is done. A further call replaces it. It returns ErrInvalid for
// more than 64 KB, after the function has returned, and for Share, Every and At.
func (r *Run) SetResult(b []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.results:
		return fail.Wrap(r.hold.Name(), fail.Invalid("SetResult is for New: the function of Share returns its result, and the function of a job has none"))
	case r.over:
		return fail.Wrap(r.hold.Name(), fail.Invalid("the run is over: only its function may set the result"))
	case len(b) > MaxResult:
		return fail.Wrap(r.hold.Name(), tooLong(b))
	}
	r.result = append([]byte(nil), b...)
	return nil
}

func tooLong(b []byte) error {
	return fail.Invalid("a result has %d bytes at most, not %d", MaxResult, len(b))
}

// take ends the run, and returns its result.
func (r *Run) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return string(r.result)
}
