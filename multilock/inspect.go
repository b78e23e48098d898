package multilock

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lock"
)

// Inspect returns the state of each lock, in the order of [Lock.Names]. The state of a lock that did not answer is
// zero.
func (l *Lock) Inspect(ctx context.Context) ([]latchkey.State, error) {
	if len(l.locks) == 0 {
		return nil, errNone
	}
	states, errs := make([]latchkey.State, len(l.locks)), make([]error, len(l.locks))
	var wg sync.WaitGroup
	for i, member := range l.locks {
		wg.Go(func() { states[i], errs[i] = public(member).Inspect(ctx) })
	}
	wg.Wait()
	return states, fail.Join(errs...)
}

func public(l *lock.Lock) *latchkey.Lock { return (*latchkey.Lock)(l) }

// String is the names and tokens. If the hold has ended, it says why.
func (h *Hold) String() string {
	text := fmt.Sprintf("hold of %q with tokens %v", h.Names(), h.Tokens())
	if err := h.Err(); err != nil {
		text = fmt.Sprintf("%s, ended: %v", text, err)
	}
	return text
}

// LogValue is a group of names and tokens. If the hold has ended, it also has the reason.
func (h *Hold) LogValue() slog.Value {
	attributes := []slog.Attr{slog.Any("names", h.Names()), slog.Any("tokens", h.Tokens())}
	if err := h.Err(); err != nil {
		attributes = append(attributes, slog.String("ended", err.Error()))
	}
	return slog.GroupValue(attributes...)
}
