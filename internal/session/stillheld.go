package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// mostNamed is how many names an error lists.
const mostNamed = 10

var errCutShort = errors.New("another call of Shutdown or Close ended the wait")

// stillHeld is the error of a Shutdown that ended before everything was unlocked. It names what is held.
func (c *Client) stillHeld(ctx context.Context) error {
	why := errCutShort
	if ctx.Err() != nil {
		why = ContextError(ctx)
	}
	names := c.heldNames()
	if len(names) == 0 {
		return Wrap("", fmt.Errorf("locks are still held: %w", why)) // the last one was unlocked just now
	}
	return Wrap("", fmt.Errorf("locks are still held: %s: %w", list(names), why))
}

// heldNames returns the names of what is held, sorted, each once.
func (c *Client) heldNames() []string {
	var names []string
	for _, t := range c.tenures() {
		if name := t.HeldName(); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// list quotes the first ten names, and counts the rest.
func list(names []string) string {
	var b strings.Builder
	for i, name := range names[:min(len(names), mostNamed)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(lua.Brief(name)))
	}
	if more := len(names) - mostNamed; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}
