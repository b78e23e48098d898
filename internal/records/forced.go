package records

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
)

const (
	// forcedTTL is how long Redis keeps who took a lock away.
	forcedTTL = 24 * time.Hour
	// forcedJustNow is how old that may be to be about what a client has just heard of: longer than a message and the
	// commands beside it take.
	forcedJustNow = time.Minute
	// clockDiffers is by how much two readings of the server's clock may differ.
	clockDiffers = 20 * time.Millisecond
	// forcedNumber stands where a record has the number of a tenure.
	forcedNumber = "forced"
)

// SayForced writes who is about to take the name's lock away, and why, which is the note of ctx: before the script runs,
// since the loser reads it as soon as it hears of that. Nothing depends on it. So a server that refuses is no error, as
// for a user who may not write the key. Without an answer the script need not be sent.
func (r *Records) SayForced(ctx context.Context, of Subject) error {
	if r.of.Untold {
		return nil
	}
	record := identity.New(r.of.Label, r.of.Began)
	record.Tenures = []identity.Tenure{{Number: forcedNumber, Since: millis(of), Note: identity.NoteOf(ctx)}}
	set := r.of.Commands.B().Set().Key(lua.ForcedRecord(of.Name())).Value(record.String()).PxMilliseconds(forcedTTL.Milliseconds()).Build()
	err := r.host.Ask(ctx, set)[0].Error()
	if err != nil && lua.Classify(err) == lua.NoAnswer {
		return err
	}
	return nil
}

// UnsayForced takes back what SayForced wrote: nothing was taken away.
func (r *Records) UnsayForced(ctx context.Context, of Subject) {
	if !r.of.Untold {
		_ = r.host.Ask(ctx, r.of.Commands.B().Del().Key(lua.ForcedRecord(of.Name())).Build())
	}
}

// LogForced has the logger told who has just taken away what had this token since then; nothing, if it was
// lost otherwise.
func (r *Records) LogForced(of Subject, name string, token int64, since time.Time) {
	if r.of.Stopped.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.of.Stopped, r.of.Timeout)
	defer cancel()
	text, err := r.host.Ask(ctx, r.get(lua.ForcedRecord(of.Name())))[0].ToString()
	if err != nil {
		return
	}
	by, age := forcedBy(text), time.Duration(0)
	if !by.Since.IsZero() {
		age = time.UnixMilli(millis(of)).Sub(by.Since)
	}
	if by.Since.IsZero() || age.Abs() > forcedJustNow || age > time.Since(since)+clockDiffers {
		return
	}
	about := []any{"name", name, "token", token, "by", identity.Printable(by.Label), "host", identity.Printable(by.Host), "pid", by.PID}
	if by.Note != "" {
		about = append(about, "why", identity.Printable(by.Note))
	}
	r.of.Logger.Warn("latchkey: taken away", about...)
}

// forcedBy is who took a lock away, when and why, as SayForced has written it.
func forcedBy(text string) identity.Party {
	r, ok := identity.Parse(text)
	if !ok {
		return identity.Party{}
	}
	return identity.PartyOf(":"+forcedNumber, r)
}

// millis is the server's clock if it is known, and else ours, in ms since 1970.
func millis(of Subject) int64 {
	now := time.Now()
	if at := of.ServerTime(now); at > 0 {
		return at / 1000
	}
	return now.UnixMilli()
}
