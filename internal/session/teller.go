package session

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// teller keeps the client's record in Redis while the client holds or waits for something. It looks once a
// second, so that an acquire costs nothing, and what is over by then is not told. Nothing waits for its
// commands, which may take as long as a dial.
type teller struct {
	open context.Context    // ends when nothing is to be told any more
	shut context.CancelFunc // ends it

	mu    sync.Mutex
	text  string    // what was sent last, and may be in Redis; empty: nothing
	until time.Time // when that must be sent again; zero: at once
}

const (
	// tellPause is how long something must last to be told.
	tellPause = time.Second
	// tellManyPause is how often it is looked when there are more than tellMany tenures.
	tellManyPause = 10 * time.Second
	tellMany      = 1000
	// recordTTL is how long a record outlives a client that was killed; recordRenewed is how often it is
	// renewed.
	recordTTL     = 30 * time.Second
	recordRenewed = 10 * time.Second
)

// Telling is what a tenure tells of itself.
type Telling struct {
	Since  time.Time       // zero: nothing is to be told
	Holds  bool            // otherwise it waits
	Caller context.Context // of the call that holds or waits; nil: not known
}

// tellLater has the record looked at.
func (c *Client) tellLater(pause time.Duration) {
	c.AfterFunc(pause, func() { c.GoSparingly(c.tell) })
}

// tell writes the record, or removes it when the client neither holds nor waits. One call runs at a time:
// each has the next one made.
func (c *Client) tell() {
	t := &c.teller
	numbers := c.registry.toTell()
	switch {
	case t.open.Err() != nil:
		return
	case len(numbers) == 0:
		if t.clear() {
			c.unwrite(t.open)
		}
		return
	}
	if text := c.record(numbers).String(); t.outdated(text) && c.write(text) {
		return
	}
	pause := tellPause
	if len(numbers) > tellMany {
		pause = tellManyPause
	}
	c.tellLater(pause)
}

// outdated notes that a text is sent. It reports false when that need not be.
func (t *teller) outdated(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text == t.text && time.Now().Before(t.until) {
		return false
	}
	t.text, t.until = text, time.Time{}
	return true
}

// written notes that what was sent last is in Redis.
func (t *teller) written() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = time.Now().Add(recordRenewed)
}

// clear notes that nothing is in Redis any more. It reports whether something may be.
func (t *teller) clear() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.text != ""
	t.text = ""
	return was
}

// write sends the record. It reports that nothing more need be told: the user may not write it.
func (c *Client) write(text string) (refused bool) {
	ctx, cancel := context.WithTimeout(c.teller.open, c.Options.CommandTimeout)
	defer cancel()
	set := c.Conn.Client.B().Set().Key(c.recordKey()).Value(text).PxMilliseconds(recordTTL.Milliseconds()).Build()
	err := c.Conn.Client.Do(WithoutDeadline(ctx), set).Error()
	if err == nil {
		c.teller.written()
		return false
	}
	reply, ok := rueidis.IsRedisErr(err)
	if refused = ok && strings.HasPrefix(reply.Error(), "NOPERM"); refused {
		c.Options.Logger.Info("latchkey: the user may not write who this client is: others see its id alone", "key", c.recordKey(), "error", err)
	}
	return refused
}

// unwrite takes the record out of Redis. After an error it goes when its time is over.
func (c *Client) unwrite(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.Options.CommandTimeout)
	defer cancel()
	_ = c.Conn.Client.Do(WithoutDeadline(ctx), c.Conn.Client.B().Del().Key(c.recordKey()).Build()).Error()
}

// endTelling removes the record for good, unless something is still held: it goes when its time is over then.
// It waits for that until ctx ends.
func (c *Client) endTelling(ctx context.Context) {
	c.teller.shut()
	if !c.teller.clear() || !c.HeldAtClose.isEmpty() {
		return
	}
	over := make(chan struct{})
	c.Go(func() {
		defer close(over)
		c.unwrite(ctx) // what was sent before is ahead of it on their connection
	})
	_ = retry.Await(ctx, over)
}

// recordKey is the key of the client's own record.
func (c *Client) recordKey() string { return identity.Key(c.Options.Prefix, c.IDs.Client) }

// record is what is to be told now. numbers are the numbers of all tenures.
func (c *Client) record(numbers []uint64) identity.Record {
	r := identity.New(c.Options.Label, c.Began)
	slices.Sort(numbers) // they grow with time
	now, size := time.Now(), 0
	var tenures []Tenure
	for _, n := range numbers {
		t := c.Tenure(n)
		if t == nil {
			continue
		}
		tenures = append(tenures, t)
		if len(r.Tenures) == identity.MaxTenures {
			continue
		}
		telling := t.Tell()
		if telling.Since.IsZero() || now.Sub(telling.Since) < tellPause {
			continue
		}
		since := telling.Since.UnixMilli()
		if at := t.Target().ServerClock.At(telling.Since); at > 0 {
			since = at / 1000
		}
		key := t.Target().Name()
		if size += len(key); size > identity.MaxKeysSize {
			key = ""
		}
		r.Tenures = append(r.Tenures, identity.Tenure{
			Number: c.IDs.Suffix(n), Since: since, Holds: telling.Holds, Key: identity.Name(key), Note: identity.NoteOf(telling.Caller),
		})
	}
	r.Waits = c.waitsTold(tenures, now)
	return r
}
