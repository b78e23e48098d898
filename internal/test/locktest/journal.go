package locktest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Journal keeps what is logged, and what outages are told to the hooks.
type Journal struct {
	mu   sync.Mutex
	text bytes.Buffer
	down []error
	up   int
}

// Write is of [io.Writer].
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// Keep sets the logger and the hooks.
func (j *Journal) Keep(o *session.Options) {
	o.Logger = slog.New(slog.NewTextHandler(j, nil))
	o.Observer.Down = func(outage session.Outage) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.down = append(j.down, outage.Err)
	}
	o.Observer.Up = func(session.Outage) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.up++
	}
}

// String returns what was logged.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Logger is an option that logs to it.
func (j *Journal) Logger() latchkey.Option {
	return latchkey.WithLogger(slog.New(slog.NewTextHandler(j, nil)))
}

// Says counts a text in what was logged.
func (j *Journal) Says(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), text)
}

// Lines returns the lines that have a text.
func (j *Journal) Lines(text string) (found []string) {
	for line := range strings.Lines(j.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// Outages returns what the hooks were told.
func (j *Journal) Outages() (down []error, up int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.down, j.up
}
