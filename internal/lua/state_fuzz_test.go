package lua_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// ownerState is what the field of a lock's owner says: see lock/acquire.lua.
type ownerState struct {
	token, reserved, longest int64 // longest is -1 when it is missing
	lingers, unconfirmed     bool
}

var (
	stateForm    = regexp.MustCompile(`^t(\d+)\+?(\d*)(l?)/?(\d*)!?(\d*)$`)
	redissonForm = regexp.MustCompile(`^\d+$`)
)

// stateOf reads a field as the scripts have to.
func stateOf(text string) (s ownerState, ours bool) {
	parts := stateForm.FindStringSubmatch(text)
	if parts == nil || len(parts[1]) > 16 || len(parts[2]) > 4 || len(parts[4]) > 10 || len(parts[5]) > 16 {
		return s, false
	}
	s.token, _ = strconv.ParseInt(parts[1], 10, 64)    // it is digits
	s.reserved, _ = strconv.ParseInt(parts[2], 10, 64) // or empty: none
	s.longest, s.lingers = -1, parts[3] != ""
	if parts[4] != "" {
		s.longest, _ = strconv.ParseInt(parts[4], 10, 64)
	}
	s.unconfirmed = parts[5] != ""
	return s, true
}

// possible reports whether a script can say these tokens.
func (s ownerState) possible() bool { return s.token > 0 && s.token+s.reserved <= greatest }

// shaped reports whether the short way into the queue takes a field for that of a lock which a message
// granted. It looks at the shape alone, where each look costs: whoever is queued so is refused when asking
// again.
func shaped(text string) bool {
	n := len(text)
	return n >= 39 && text[17] == '/' && text[n-17] == '!' && (n > 39 || text[18] >= '2')
}

// statesOfTests are the fields that TestAbsurdLocks and others put into locks, with leases that last.
func statesOfTests() (texts []string) {
	for _, form := range []string{"%", "t%", "t1+%", "t1+%l/9000", "t1/%", "t1/9000!%"} {
		for _, value := range absurd {
			texts = append(texts, strings.Replace(form, "%", value, 1))
		}
	}
	return append(texts, "t5/3000!5", "t1700000000000001+32l/60000!1700000000000000", "t1700000000000001/60000", "t12", "t7+5000l", "t12345678901234567",
		"t1+12345", "t1!12345678901234567",
		"x1700000000000001/60000!1700000000000000", "t1700000000000001/6000x!170000000000000x")
}

// The field of a lock's owner is ours, or Redisson's, or is refused: then every script says so by type, and
// nothing has changed. One of ours is read as it says, by whoever looks and by its owner, and nobody else
// gets the lock. What an acquire has written is read as what it has replied.
func FuzzState(f *testing.F) {
	for _, text := range statesOfTests() {
		f.Add(text, uint16(0), false)
	}
	for _, claim := range entries {
		f.Add("t1", uint16(claim.Permits), claim.Lingers)
	}
	b := newBench(f, redistest.NewEmbedded(f))
	name := b.lock.Name()
	f.Fuzz(func(t *testing.T, text string, block uint16, lingers bool) {
		do := func(args ...string) rueidis.RedisMessage {
			return message(t, b.conn.Client.Do(t.Context(), b.conn.Client.B().Arbitrary(args...).Build()))
		}
		ask := func(owner string, mode lua.Mode) (lua.Acquired, error) {
			return b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: owner, Lease: 60_000}, 0, mode)
		}
		do("FLUSHALL")
		do("HSET", name, "A:1", text)
		do("PEXPIRE", name, "60000")
		was, ours := stateOf(text)
		before := dump(t, b.conn.Client)

		inspected, err := b.conn.Inspect(t.Context(), b.lock, 10)
		switch {
		case ours && was.token > greatest:
			require.ErrorIs(t, err, lua.ErrReply)
		case ours, redissonForm.MatchString(text):
			require.NoError(t, err)
			require.Equal(t, "A:1", inspected.Owner)
			require.Equal(t, was.token, inspected.Token)
			require.Equal(t, was.lingers, inspected.MayLinger)
			require.True(t, inspected.Ends >= 0 && inspected.Ends <= 60_000, inspected.Ends)
		default:
			require.Equal(t, lua.WrongType, lua.Classify(err), err)
			for owner, mode := range map[string]lua.Mode{"A:1": lua.Again, "B:1": lua.First, "C:1": lua.Try} {
				if mode == lua.First && shaped(text) {
					continue
				}
				_, err := ask(owner, mode)
				require.Equal(t, lua.WrongType, lua.Classify(err), err)
			}
			require.Equal(t, before, dump(t, b.conn.Client), "it is refused, and something has changed")
			if a, err := ask("B:1", lua.First); shaped(text) && err == nil {
				require.True(t, a.Queued)
				_, err = ask("B:1", lua.Again)
				require.Equal(t, lua.WrongType, lua.Classify(err), err)
			}
		}
		if ours && was.longest != 0 && !was.unconfirmed { // its lease goes on
			taken, err := ask("B:1", lua.Try)
			require.NoError(t, err)
			require.Zero(t, taken.Token, "somebody else has it")
			again, err := ask("A:1", lua.Again)
			if !was.possible() {
				require.ErrorIs(t, err, lua.ErrReply)
			} else {
				require.NoError(t, err)
				require.Equal(t, lua.Owned{Token: was.token, Reserved: was.reserved}, again.Owned)
			}
			require.Equal(t, before[name], dump(t, b.conn.Client)[name])
		}

		do("FLUSHALL")
		claim := lua.Claim{Owner: "A:1", Lease: 60_000, Demand: lua.Demand{Permits: int(block), Lingers: lingers}}
		reply, err := b.conn.Acquire(t.Context(), b.lock, claim, 0, lua.First)
		require.NoError(t, err)
		field := do("HGET", name, "A:1")
		written, err := field.ToString()
		require.NoError(t, err)
		is, ours := stateOf(written)
		require.True(t, ours && is.possible(), written)
		require.Equal(t, ownerState{token: reply.Token, reserved: reply.Reserved, longest: 60_000, lingers: lingers}, is, written)
	})
}
