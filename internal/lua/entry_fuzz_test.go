package lua_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// entryOfOurs is an entry as a claim has it.
var entryOfOurs = regexp.MustCompile(`^1:([^:]+):(\d{1,20}):(\d{1,10}):(\d{1,10})(d?)(g?)(p?)(u?)(s?)(l?)(?:t([1-9]\d{0,3}))?$`)

// scriptsEntry is what the scripts of semaphores read: see parse in permit/queue.lua.
var scriptsEntry = regexp.MustCompile(`^1:(([^:]+):(\d+)):(\d+):(\d+)([A-Za-z]*)(\d*)$`)

// readByScripts returns the owner of an entry, and how many permits it asks for, if the scripts read it.
func readByScripts(entry string) (owner string, permits int64, ok bool) {
	parts := scriptsEntry.FindStringSubmatch(entry)
	if parts == nil || len(parts[3]) > 20 || len(parts[4]) > 10 || len(parts[5]) > 10 || len(parts[7]) > 4 {
		return "", 0, false
	}
	permits, err := strconv.ParseInt(parts[5], 10, 32) // no semaphore has more
	return parts[1], permits, err == nil
}

// claimOf is the claim of an entry, if its numbers have no zeros in front.
func claimOf(entry string) (lua.Claim, bool) {
	parts := entryOfOurs.FindStringSubmatch(entry)
	if parts == nil {
		return lua.Claim{}, false
	}
	lease, leaseErr := strconv.ParseInt(parts[3], 10, 64)
	permits, permitsErr := strconv.ParseInt(parts[4], 10, 32)
	turns, _ := strconv.Atoi(parts[11]) // 0: it has none
	plain := strconv.FormatInt(lease, 10) == parts[3] && strconv.FormatInt(permits, 10) == parts[4]
	return lua.Claim{Owner: parts[1] + ":" + parts[2], Lease: lease, Demand: lua.Demand{
		Permits: int(permits), Drain: parts[5] != "", Grow: parts[6] != "", Pass: parts[7] != "", Unset: parts[8] != "",
		Shared: parts[9] != "", Lingers: parts[10] != "", Turns: turns,
	}}, leaseErr == nil && permitsErr == nil && plain
}

// An entry is read or refused. Of one that is refused nothing is returned. What a claim writes is read as
// what it says, and whatever the scripts read is read here as well: so what Inspect tells is what they will
// grant.
func FuzzEntry(f *testing.F) {
	for text := range entries {
		f.Add(text)
	}
	for _, text := range noEntries {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, err := lua.ParseEntry(text)
		owner, permits := read.Owner, read.Permits
		claim, ours := claimOf(text)
		if ours {
			require.Equal(t, text, claim.Entry())
			require.NoError(t, err)
			require.Equal(t, claim.Owner, owner)
			require.Equal(t, claim.Permits, permits)
			require.Equal(t, claim.Shared, read.Shared)
		}
		if whose, n, ok := readByScripts(text); ok {
			require.NoError(t, err)
			require.Equal(t, whose, owner)
			require.EqualValues(t, n, permits)
		}
		if err != nil {
			require.ErrorIs(t, err, lua.ErrReply)
			require.Zero(t, read)
			return
		}
		require.True(t, permits >= 0 && permits <= math.MaxInt32, permits)
		require.True(t, strings.HasPrefix(text, lua.Version+":"+owner+":"))
		require.Equal(t, 1, strings.Count(owner, ":"))
		_, err = lua.ParseEntry("2" + text[1:])
		require.ErrorIs(t, err, lua.ErrReply, "another version")
	})
}
