package records

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
)

const (
	// forcedTTL is how long Redis keeps the record of who took a lock away.
	forcedTTL = 24 * time.Hour
	// forcedJustNow is how old that record may be to explain a loss that a client has just heard of. It is longer
	// than a message and the commands beside the message take.
	forcedJustNow = time.Minute
	// clockDiffers is by how much two readings of the server's clock may differ.
	clockDiffers = 20 * time.Millisecond
	// forcedNumber stands in that record where other records have the number of a tenure.
	forcedNumber = "forced"
)

// SayForced writes who is about to take the lock of a name away, and why: the reason is the note of ctx. It does so
// before the script runs, because the loser reads the record as soon as the loser hears of the loss. Nothing depends
// on the record. So SayForced returns no error if the server refuses, for example because the user may not write the
// key. If the server does not answer, SayForced returns an error, and the caller need not send the script.
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

// UnsayForced takes back what SayForced wrote, because nothing was taken away.
func (r *Records) UnsayForced(ctx context.Context, of Subject) {
	if !r.of.Untold {
		_ = r.host.Ask(ctx, r.of.Commands.B().Del().Key(lua.ForcedRecord(of.Name())).Build())
	}
}

// LogForced logs who has just taken away what was held with this token from since on. If the hold was lost in another
// way, it logs nothing.
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

// forcedBy returns who took a lock away, when and why, from the text that SayForced wrote.
func forcedBy(text string) identity.Party {
	r, ok := identity.Parse(text)
	if !ok {
		return identity.Party{}
	}
	return identity.PartyOf(":"+forcedNumber, r)
}

// millis returns the server's clock if it is known, else the clock of this process, in ms since 1970.
func millis(of Subject) int64 {
	now := time.Now()
	if at := of.ServerTime(now); at > 0 {
		return at / 1000
	}
	return now.UnixMilli()
}
