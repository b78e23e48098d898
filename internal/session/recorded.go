package session

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/records"
)

// recorded is the client as its records see it.
type recorded struct{ c *Client }

func (c *Client) newRecords() *records.Records {
	o := &c.Options
	return records.New(records.Client{
		ID: c.IDs.Client, Prefix: o.Prefix, Label: o.Label, Untold: o.Untold, Began: c.Began, Commands: c.Conn.Client,
		Timeout: o.CommandTimeout, Logger: o.Logger, Closing: c.Closing, Stopped: c.Stopped,
	}, recorded{c})
}

// The methods of [records.Host].

func (r recorded) After(d time.Duration, f func()) records.Timer {
	return r.c.AfterFunc(d, func() { r.c.GoSparingly(f) })
}

func (r recorded) Go(f func()) { r.c.Go(f) }

func (r recorded) Ask(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	return r.c.Conn.Client.DoMulti(WithoutDeadline(ctx), commands...)
}

func (r recorded) Tenures() []records.Tenure { return r.c.registry.recorded() }

func (r recorded) TenuresOrTell() []records.Tenure { return r.c.registry.recordedOrBegin() }

func (r recorded) Suffix(number uint64) string { return r.c.IDs.Suffix(number) }

func (r recorded) Lines(now time.Time) (all []records.Telling) {
	for _, q := range r.c.queues() {
		all = append(all, q.TellLine(now)...)
	}
	return all
}

func (r recorded) HoldsAtClose() bool { return !r.c.HeldAtClose.isEmpty() }

// IsLock, ServerTime and Name are of [records.Subject].

// IsLock reports whether the primitive with the name has an owner at a time, or readers.
func (t *Target) IsLock() bool {
	switch t.Keys.Family() {
	case lua.Locks, lua.ReadWrite, lua.Leader:
		return true
	}
	return false
}

// ServerTime returns what the clock of the name's server shows at a moment, in µs since 1970; 0 when it is not known.
func (t *Target) ServerTime(moment time.Time) int64 { return t.ServerClock.At(moment) }
