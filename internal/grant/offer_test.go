package grant

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// vanished is the commands of a lock that Redis has lost: each offer finds neither id.
type vanished struct {
	mode  lua.Mode
	until int64
}

func (v *vanished) Take(_ context.Context, c lua.Claim, m lua.Mode) (lua.Acquired, error) {
	v.mode, v.until = m, c.Until
	return lua.Acquired{}, errors.New("not asked any further")
}

func (*vanished) Release(context.Context, lua.Ending, int) (bool, error) { return false, nil }

func (*vanished) Offer(context.Context, string, string, int64, lua.Claim, lua.Mode) (lua.Acquired, error) {
	return lua.Acquired{Gone: true}, nil
}

// An offer of what Redis has lost goes on as an acquire. One that may not queue, because no grant would reach
// it, still may not, and keeps its deadline. One that may asks as one that may be queued already: a copy of
// the offer may have run.
func TestOfferOfWhatIsLost(t *testing.T) {
	for mode, then := range map[lua.Mode]lua.Mode{lua.Try: lua.Try, lua.First: lua.Again, lua.Again: lua.Again} {
		t.Run(string(mode), func(t *testing.T) {
			c := &session.Client{Closing: t.Context(), Options: session.Options{Logger: slog.New(slog.DiscardHandler)}}
			keys, err := lua.NewKeys(lua.Locks, "a", false)
			require.NoError(t, err)
			commands := &vanished{}
			kind := &Kind{Offerer: func(*Queue) Offerer { return commands }}
			q := &Queue{At: session.Target{Client: c, Keys: keys}, Commands: commands, kind: kind}
			q.waiters = wait.New(&q.mu, c.Closing, q, time.Second)
			old, fresh := &tenure{queue: q}, &tenure{queue: q}
			old.waiter.Number, fresh.waiter.Number, fresh.waiter.Offers = 1, 2, true
			fresh.offered = old
			require.True(t, c.Register(2, fresh))
			_, err = q.Ask(t.Context(), &fresh.waiter, mode, 12345)
			require.Error(t, err)
			require.Equal(t, then, commands.mode)
			require.EqualValues(t, 12345, commands.until)
		})
	}
}
