package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// asCommand in the environment has a test binary be the command.
const asCommand = "LATCHKEY_TEST_COMMAND"

func TestMain(m *testing.M) {
	// The demonstration starts its own binary, which here is this one, and so do tests of the others.
	if os.Getenv(asCommand) != "" || len(os.Args) > 1 && os.Args[1] == "demo-worker" {
		main()
		return
	}
	redistest.Main(m)
}

func run(t *testing.T, args ...string) (summary, error) {
	t.Helper()
	var out bytes.Buffer
	c := command()
	c.Writer = &out
	began := time.Now()
	err := c.Run(t.Context(), append([]string{"latchkey", "demo", "--json"}, args...))
	require.Less(t, time.Since(began), limit)
	var s summary
	if err == nil || errors.Is(err, errBroken) {
		require.NoError(t, json.Unmarshal(out.Bytes(), &s))
	}
	return s, err
}

func TestDemo(t *testing.T) {
	judge := func(t *testing.T, s summary, err error) {
		require.NoError(t, err)
		require.Len(t, s.Checks, 7)
		for _, c := range s.Checks {
			require.True(t, c.OK, c.Name)
		}
		require.Positive(t, s.Unlocked.Oversold)
		require.Equal(t, 100, s.Locked.Sold)
	}
	t.Run("embedded", func(t *testing.T) {
		s, err := run(t, "--stock", "100")
		judge(t, s, err)
		require.Equal(t, "embedded", s.Server)
	})
	t.Run("redis", func(t *testing.T) {
		server := redistest.NewProcess(t)
		s, err := run(t, "--stock", "100", "--redis", server.URL())
		judge(t, s, err)
		client := server.Client(t)
		keys, err := client.Do(t.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice()
		require.NoError(t, err)
		for _, key := range keys {
			ttl, err := client.Do(t.Context(), client.B().Pttl().Key(key).Build()).AsInt64()
			require.NoError(t, err)
			require.NotEqual(t, int64(-1), ttl, "%s is left behind", key)
		}
	})
}

// The exit status is 0 only if every invariant held.
func TestBrokenInvariantIsAnError(t *testing.T) {
	var s summary
	s.Unlocked.Oversold = 1
	s.Locked.Sold, s.Stock = 11, 10
	s.Killed.Kept = true
	s.judge()
	broken := 0
	for _, c := range s.Checks {
		if !c.OK {
			broken++
		}
	}
	require.Equal(t, 1, broken)
	require.ErrorIs(t, s.verdict(), errBroken)
}

// What a machine that stood still cannot show is not broken. What is late by more than that is.
func TestStalledIsNotBroken(t *testing.T) {
	for _, c := range []struct {
		killing
		err error
	}{
		{killing{LeaseMS: 1500, Kept: true, WaitedMS: 1600}, nil},
		{killing{LeaseMS: 1500, Kept: true, WaitedMS: 1752, StillMS: 152}, errStalled},
		{killing{LeaseMS: 1500, Kept: true, WaitedMS: 1752, StillMS: 151}, errBroken},
		{killing{LeaseMS: 1500, Kept: false, StillMS: 999}, errBroken},
		{killing{LeaseMS: 1500, Kept: false, StillMS: 1000}, errStalled},
	} {
		var s summary
		s.Unlocked.Oversold, s.Killed = 1, c.killing
		s.judge()
		require.ErrorIs(t, s.verdict(), c.err, "%+v", c)
	}
}

// A witness sees that its process was stopped, and says since when.
func TestWitness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := testify(ctx, nil)
		time.Sleep(time.Minute)
		require.Zero(t, w.since(time.Time{}), "it looks as often as it wants to")
		cancel()
	})
	var w witness
	now := time.Now()
	w.note(stall{now, time.Second})
	w.note(stall{now.Add(2 * time.Second), time.Second})
	require.Equal(t, 2*time.Second, w.since(time.Time{}))
	require.Equal(t, 1500*time.Millisecond, w.since(now.Add(-time.Second/2)), "the part of a stall that is not past")
	require.Equal(t, time.Second, w.since(now))
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"--processes", "1"}, {"--stock", "0"}, {"--redis", "nonsense"}, {"--redis", "redis://127.0.0.1:1"}} {
		_, err := run(t, args...)
		require.Error(t, err, "%v", args)
	}
}
