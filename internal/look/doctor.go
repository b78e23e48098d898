package look

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// Verdict is what became of a check.
type Verdict string

// The verdicts, as they are printed.
const (
	Fine     Verdict = "ok"
	Doubtful Verdict = "warning" // it may be so on purpose, or costs something
	Wrong    Verdict = "wrong"   // a guarantee does not hold
	Unknown  Verdict = "unknown" // the server does not say
)

// Finding is what a check has found, and how to mend it.
type Finding struct {
	Check   string  `json:"check"`
	Server  string  `json:"server,omitempty"` // empty: it is of all
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`
	Mend    string  `json:"mend,omitempty"`
}

// Patient is what the doctor examines.
type Patient struct {
	client *latchkey.Client
	plain  rueidis.Client
	prefix string

	servers []*server
}

// server is one of a patient's that keys may be on, with what it says of itself.
type server struct {
	rueidis.Client

	address string
	prefix  string
	info    map[string]string
	offset  time.Duration // how far its clock is ahead of ours
}

// NewPatient asks each server that plain knows what it says of itself. Then it has open make the client with which it tries the
// rest. When the user may not do what connecting asks for, which is a finding, it has open make one that connects lazily. The
// plain client stays the caller's to close.
func NewPatient(
	ctx context.Context, plain rueidis.Client, prefix string, open func(...latchkey.Option) (*latchkey.Client, error),
) (*Patient, error) {
	p := &Patient{plain: plain, prefix: prefix}
	err := eachServer(plain, func(address string, r rueidis.Client) error {
		s := &server{Client: r, address: address, prefix: prefix, info: map[string]string{}}
		before := time.Now()
		clock, err := r.Do(ctx, r.B().Time().Build()).AsIntSlice()
		if err != nil || len(clock) != 2 {
			return fmt.Errorf("%s: TIME: %w", address, err)
		}
		trip := time.Since(before)
		s.offset = time.UnixMicro(clock[0]*1_000_000 + clock[1]).Sub(before.Add(trip / 2))
		text, err := r.Do(ctx, r.B().Info().Build()).ToString() // without the permission for it: nothing
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && err == nil {
				s.info[name] = value
			}
		}
		p.servers = append(p.servers, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if p.client, err = open(); lua.Forbidden(err) {
		p.client, err = open(latchkey.WithLazyConnect())
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Close closes the client that was opened for it.
func (p *Patient) Close() { p.client.Close() }

// longestTry is how long a client is tried that is not told why it cannot connect.
const longestTry = 5 * time.Second

// Examine makes all checks.
func (p *Patient) Examine(ctx context.Context) (all []Finding) {
	for _, s := range p.servers {
		if s.info["cluster_enabled"] == "1" && s.info["role"] == "slave" { // which another one speaks for
			continue
		}
		for _, check := range []func(context.Context) Finding{
			s.version, s.role, s.eviction, s.persistence, s.replicas, s.clock, s.undeclared, s.hears, s.waits,
		} {
			f := check(ctx)
			f.Server = s.address
			all = append(all, f)
		}
	}
	limited, cancel := context.WithTimeout(ctx, longestTry)
	defer cancel()
	return append(all, p.inbox(limited), p.latency(limited), p.locks(limited), p.keys(ctx))
}
