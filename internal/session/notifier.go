package session

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Notifier calls the user's hooks and logger where no caller waits for them: one call after the other, in a goroutine
// that exists only while there is something to call. So no goroutine of ours waits for hooks and logger, and their
// calls come in order. A hook that panics there ends the process, as a panic does in any goroutine. Methods are safe
// for concurrent use.
type Notifier struct {
	start func(func()) // runs a function in a goroutine

	mu      sync.Mutex
	pending []func()
	running bool
}

// maxPending is how many calls may wait. Notify leaves out further calls.
const maxPending = 10_000

// Notify makes another goroutine call f soon. It does not block.
func (n *Notifier) Notify(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.pending) >= maxPending {
		return
	}
	n.pending = append(n.pending, f)
	if !n.running {
		n.running = true
		n.start(n.run)
	}
}

func (n *Notifier) run() {
	for {
		n.mu.Lock()
		if len(n.pending) == 0 {
			n.running, n.pending = false, nil // the array goes too: the functions that were called refer to much
			n.mu.Unlock()
			return
		}
		f := n.pending[0]
		n.pending[0] = nil
		n.pending = n.pending[1:]
		n.mu.Unlock()
		f()
	}
}

// notifyingHandler hands log records to another handler by a notifier. The client uses it without attributes and
// groups of its own.
type notifyingHandler struct {
	slog.Handler
	by *Notifier
}

// Enabled is of [slog.Handler]. The notifier asks the other handler later.
func (h notifyingHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle is of [slog.Handler].
func (h notifyingHandler) Handle(ctx context.Context, r slog.Record) error {
	h.by.Notify(func() {
		if h.Handler.Enabled(ctx, r.Level) {
			_ = h.Handler.Handle(ctx, r) // nothing can be done about its error here
		}
	})
	return nil
}

// HookOrUndo calls a hook on the goroutine of a caller that has just acquired something. If the hook panics, undo
// gives this acquisition back: a caller that recovers from the panic does not have it.
func HookOrUndo(hook, undo func()) {
	done := false
	defer func() {
		if !done {
			undo()
		}
	}()
	hook()
	done = true
}

// HookOrCrash calls a hook in the middle of an operation of ours. If the hook panics, or ends its goroutine,
// the process ends: a panic that the caller recovered would leave the operation half done.
func HookOrCrash(hook func()) {
	done := false
	defer func() {
		if !done {
			p := recover()
			if p == nil {
				p = "latchkey: a Queued hook ended its goroutine"
			}
			go panic(fmt.Sprintf("%v\n\n%s", p, debug.Stack()))
			select {} // nothing goes on from here
		}
	}()
	hook()
	done = true
}
