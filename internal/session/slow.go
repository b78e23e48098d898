package session

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
)

// Slow logs a wait or a hold that lasts for too long. A nil Slow logs nothing.
type Slow struct {
	client *Client
	date   *Date
	at     string
	began  time.Time
}

// SlowWait watches the wait of the calling goroutine, which begins now. Without WithSlow it returns nil. tell returns
// what else the client knows of the wait, in pairs for the logger.
func (c *Client) SlowWait(name string, tell func(context.Context) []any) *Slow {
	return c.slow(c.Options.SlowWait, name, func(ctx context.Context, lasts time.Duration, about []any) {
		c.Options.Logger.Warn("latchkey: slow wait", append(append(about, "waited", lasts), tell(ctx)...)...)
	})
}

// SlowHold watches a hold that the calling goroutine gets now.
func (c *Client) SlowHold(name string, tell func(context.Context) []any) *Slow {
	return c.slow(c.Options.SlowHold, name, func(ctx context.Context, lasts time.Duration, about []any) {
		c.Options.Logger.Warn("latchkey: slow hold", append(append(about, "held", lasts), tell(ctx)...)...)
	})
}

func (c *Client) slow(limit time.Duration, name string, log func(ctx context.Context, lasts time.Duration, about []any)) *Slow {
	if limit == 0 {
		return nil
	}
	s := &Slow{client: c, at: caller(), began: time.Now()}
	s.date = c.AfterFunc(limit, func() {
		c.Go(func() {
			ctx, cancel := context.WithTimeout(c.Stopped, c.Options.CommandTimeout)
			defer cancel()
			log(ctx, time.Since(s.began).Round(time.Millisecond), []any{"name", name, "at", s.at})
		})
	})
	return s
}

// End says that the wait or hold is over.
func (s *Slow) End() {
	if s != nil {
		s.date.Stop()
	}
}

// Holder returns what a logger gets about a holder, in pairs.
func Holder(who identity.Party) (about []any) {
	for _, a := range who.About() {
		key := a.Key
		if key == "label" {
			key = "holder"
		}
		about = append(about, key, a.Value)
	}
	return about
}

// caller returns the place in the source from which the user called the library: <file>:<line>.
func caller() string {
	var counters [32]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(3, counters[:])])
	for {
		frame, more := frames.Next()
		ours := strings.HasPrefix(frame.Function, identity.Module+".") || strings.HasPrefix(frame.Function, identity.Module+"/")
		if !ours || strings.Contains(frame.Function, "_test.") || strings.HasSuffix(frame.File, "_test.go") || !more {
			return frame.File + ":" + strconv.Itoa(frame.Line)
		}
	}
}
