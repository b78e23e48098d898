package session

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// teller calls the user's hooks and logger where no caller of ours waits: one after the other, in a goroutine
// that is there only as long as there is something to tell. So nothing of ours waits for them, and they are
// told in order. A hook that panics there ends the process, as it does in any goroutine.
type teller struct {
	start func(func()) // runs a function in a goroutine

	mu      sync.Mutex
	untold  []func()
	running bool
}

// patience is how much waits to be told at most: what comes when so much does is not told.
const patience = 10_000

func (t *teller) Tell(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.untold) >= patience {
		return
	}
	t.untold = append(t.untold, f)
	if !t.running {
		t.running = true
		t.start(t.run)
	}
}

func (t *teller) run() {
	for {
		t.mu.Lock()
		if len(t.untold) == 0 {
			t.running, t.untold = false, nil // with what was told: it refers to much
			t.mu.Unlock()
			return
		}
		f := t.untold[0]
		t.untold[0] = nil
		t.untold = t.untold[1:]
		t.mu.Unlock()
		f()
	}
}

// deferring is a handler that has another one told. It is used without attributes and groups of its own.
type deferring struct {
	slog.Handler
	by *teller
}

// Enabled and Handle are of [slog.Handler]. The other one is asked where it is told.
func (d deferring) Enabled(context.Context, slog.Level) bool { return true }

// Handle has the record told, if that is wanted.
func (d deferring) Handle(ctx context.Context, r slog.Record) error {
	d.by.Tell(func() {
		if d.Handler.Enabled(ctx, r.Level) {
			_ = d.Handler.Handle(ctx, r) // there is nobody whom its error would help
		}
	})
	return nil
}

// whole calls a hook on the goroutine of a caller for whom something was just taken, and undoes that if the
// hook panics: whoever recovers does not have it.
func Whole(hook, undo func()) {
	done := false
	defer func() {
		if !done {
			undo()
		}
	}()
	hook()
	done = true
}

// contained calls a hook in the middle of an operation of ours. A panic that somebody recovers would leave that
// half done: so nobody can, and the process ends.
func Contained(hook func()) {
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
