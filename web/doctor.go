package latchkeyweb

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/look"
)

// examined is for how long an examination is good: it asks for all keys.
const examined = time.Minute

// doctor examines the server, for all who ask.
type doctor struct {
	mu   sync.Mutex
	last diagnosis
}

// diagnosis is what an examination has found.
type diagnosis struct {
	Findings []look.Finding
	Err      string
	At       time.Time
}

// examine returns what is wrong, as of a minute ago at most. An examination that was broken off is not kept.
func (d *doctor) examine(ctx context.Context, p *page) diagnosis {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.last.At) < examined {
		return d.last
	}
	now := diagnosis{At: time.Now()}
	patient, err := look.NewPatient(ctx, p.looker.Plain, p.looker.Prefix, func(...latchkey.Option) (*latchkey.Client, error) { return p.looker.Client, nil })
	if err != nil {
		now.Err = identity.Printable(err.Error())
		return now
	}
	now.Findings = patient.Examine(ctx)
	if ctx.Err() == nil {
		d.last = now
	}
	return now
}
