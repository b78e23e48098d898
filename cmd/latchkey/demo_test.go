package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// asCommand in the environment has a test binary be the command.
const asCommand = "LATCHKEY_TEST_COMMAND"

func TestMain(m *testing.M) {
	// The demonstration starts its own binary, which here is this one, and so do tests of the others.
	if os.Getenv(asCommand) != "" || len(os.Args) > 1 && os.Args[1] == "demo-worker" {
		main()
		return
	}
	if code := m.Run(); code != 0 {
		os.Exit(code)
	}
	if err := goleak.Find(); err != nil {
		panic(err)
	}
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
		require.Len(t, s.Checks, 6)
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
	s.judge()
	broken := 0
	for _, c := range s.Checks {
		if !c.OK {
			broken++
		}
	}
	require.Equal(t, 1, broken)
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"--processes", "1"}, {"--stock", "0"}, {"--redis", "nonsense"}, {"--redis", "redis://127.0.0.1:1"}} {
		_, err := run(t, args...)
		require.Error(t, err, "%v", args)
	}
}
