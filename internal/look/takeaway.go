package look

import (
	"context"

	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
)

// TakeAway takes a lock away from the holder with this token, and reports whether that one still had it. The report says what the
// name is. It asks the Client alone; the note of ctx is why.
func (l *Looker) TakeAway(ctx context.Context, name string, r Report, token int64) (taken bool, err error) {
	if r.Kind != KindReadWrite {
		lock, err := rlock.New(l.Client, name)
		if err != nil {
			return false, err
		}
		return lock.ForceUnlockToken(ctx, token)
	}
	both, err := rwlock.New(l.Client, name)
	if err != nil {
		return false, err
	}
	// One half alone: those to whom its release grants the lock may be of the other one.
	half := both.Write()
	if r.Shares > 0 {
		half = both.Read()
	}
	return half.ForceUnlockToken(ctx, token)
}
