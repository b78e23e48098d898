package once

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/identity"
)

// The errors that only this package has, for errors.Is.
var (
	// ErrDone is returned by TryDo when it was done before.
	ErrDone = errors.New("done already")
	// ErrNotDone is returned by Result while it is not done.
	ErrNotDone = errors.New("not done")
	// ErrSuperseded says that the function ran to its end, but another run has begun since, or Redis has lost its
	// record. Nothing was recorded.
	ErrSuperseded = errors.New("superseded: another run has begun since, or the record of this one is lost")
	// ErrGivenUp says that the function has failed or died as often as [WithAttempts] allows. It runs again when Redis
	// has forgotten that: see [WithTTL].
	ErrGivenUp = errors.New("given up")
)

// Failure is the error of a function that ran for another caller: its text. Share returns it, for errors.As.
type Failure struct {
	// Text is what the error said, 4 KB at most.
	Text string
}

// Error returns the text.
func (f *Failure) Error() string { return f.Text }

// longestText is how many bytes of an error's text other callers get.
const longestText = 4 << 10

func failure(err error) string { return identity.Clip(err.Error(), longestText) }

// notRun makes an error match ErrNotRun of the root package, as a lock's Do does if its function never ran.
func notRun(ctx context.Context, err error) error {
	return hold.Guard[*grant.Hold](ctx, nil, err, nil)
}
