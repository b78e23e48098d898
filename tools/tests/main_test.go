package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded is what go test -json says of a package: one test passes, one fails, three are skipped.
const recorded = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: needs nothing\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":0.1}
{"Action":"output","Package":"p","Test":"TestC","Output":"    process.go:156: needs a redis-server on the PATH\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"--- SKIP: TestC (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestC","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestD","Output":"    process.go:156: needs a redis-server on the PATH\n"}
{"Action":"skip","Package":"p","Test":"TestD","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestE","Output":"    jump.go:39: needs a C compiler (cc) on the PATH\n"}
{"Action":"skip","Package":"p","Test":"TestE","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestF","Output":"    f_test.go:1: on Windows\n"}
{"Action":"skip","Package":"p","Test":"TestF","Elapsed":0}
{"Action":"output","Package":"p","Output":"latchkey: spent 1500 ms of processor\n"}
{"Action":"fail","Package":"p","Elapsed":1}
`

func TestTally(t *testing.T) {
	tally := newTally()
	require.NoError(t, tally.read(strings.NewReader(recorded)))
	const line = "2 tests ran, 1 failed; skipped: 2 need a redis-server on the PATH, "
	for system, command := range map[string]string{
		"apt-get": "\nto run them as well: sudo apt-get install redis-server gcc libc6-dev", "brew": "\nto run them as well: brew install redis gcc", "": "",
	} {
		text := tally.String(system)
		require.True(t, strings.HasPrefix(text, line) && strings.HasSuffix(text, command), text)
		require.Contains(t, text, "1 need a C compiler (cc) on the PATH")
		require.Contains(t, text, "1 need what it says: on Windows")
	}
	require.Equal(t, map[string]time.Duration{"p": 1500 * time.Millisecond}, tally.spent)
	require.Equal(t, map[string]time.Duration{"p": time.Second}, tally.took)
	for i, p := range []string{"q", "r", "s", "t", "u"} {
		tally.took[p] = time.Duration(i) * time.Minute
	}
	require.Contains(t, tally.String(""), "\nthe longest: u 240 s, t 180 s, s 120 s, r 60 s, p 1 s; most of the processor: p 2 s")
	require.Equal(t, "0 tests ran, 0 failed", newTally().String("apt-get"))
}

// What failed while its process stood still is run again, alone. All else that failed is red.
func TestJudge(t *testing.T) {
	const stalledTest = `{"Time":"2026-01-01T00:00:00Z","Action":"run","Package":"p","Test":"TestA"}
{"Time":"2026-01-01T00:00:01Z","Action":"output","Package":"p","Output":"latchkey: stood still for 300 ms\n"}
{"Time":"2026-01-01T00:00:02Z","Action":"fail","Package":"p","Test":"TestA","Elapsed":2}
{"Time":"2026-01-01T00:00:02Z","Action":"fail","Package":"p","Elapsed":2}
`
	early := strings.ReplaceAll(stalledTest, "00:00:01Z", "00:00:00Z")
	for name, c := range map[string]struct {
		text          string
		again         error
		green, repeat bool
		says          string
	}{
		"passed":               {"", nil, true, false, ""},
		"stalled":              {stalledTest, nil, true, true, "stalled: p TestA failed while its process stood still for 300ms"},
		"fails alone":          {stalledTest, errors.New("exit 1"), false, true, "alone it failed as well"},
		"no stall":             {strings.ReplaceAll(stalledTest, "stood still", "went on"), nil, false, false, "did not stand still"},
		"stalled before":       {early, nil, false, false, "did not stand still"},
		"another one":          {strings.Replace(stalledTest, `"Package":"p","Output"`, `"Package":"q","Output"`, 1), nil, false, false, "did not stand still"},
		"a race":               {strings.Replace(stalledTest, "{", `{"Action":"output","Package":"p","Test":"TestA","Output":"WARNING: DATA RACE\n"}`+"\n{", 1), nil, false, false, "DATA RACE"},
		"a package alone":      {stalledTest + `{"Action":"fail","Package":"q"}`, nil, false, true, "red: q"},
		"one that never ended": {stalledTest + `{"Action":"run","Package":"p","Test":"TestB"}`, nil, false, true, "p TestB has not ended"},
	} {
		t.Run(name, func(t *testing.T) {
			tally, out, repeated := newTally(), &bytes.Buffer{}, false
			require.NoError(t, tally.read(strings.NewReader(c.text)))
			green := tally.judge(func(p, test string) ([]byte, error) {
				require.Equal(t, "p TestA", p+" "+test)
				repeated = true
				return nil, c.again
			}, out)
			require.Equal(t, c.green, green)
			require.Equal(t, c.repeat, repeated)
			require.Contains(t, out.String(), c.says)
		})
	}
}

// A phase that failed without a test is red, also when what failed in another one is excused.
func TestPhases(t *testing.T) {
	write := func(text string) string {
		name := filepath.Join(t.TempDir(), "1")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	passes := func(string, string) ([]byte, error) { return nil, nil }
	excused := write(strings.NewReplacer(`"fail","Package":"p","Test":"TestB","Elapsed":0.1}`, `"fail","Package":"p","Test":"TestB","Elapsed":0.1}
{"Action":"output","Package":"p","Output":"latchkey: stood still for 300 ms\n","Time":"2026-01-01T00:00:01Z"}`).Replace(recorded))
	for _, c := range []struct {
		phases []string
		green  bool
	}{
		{[]string{"1:" + excused}, false}, // the stall came later
		{[]string{"0:" + write("")}, true},
		{[]string{"1:" + write("")}, false},
		{[]string{"0:" + write(`{"Action":"start","Package":"p"}`)}, false},
	} {
		var out bytes.Buffer
		green, err := run(c.phases, passes, &out)
		require.NoError(t, err)
		require.Equal(t, c.green, green, "%v\n%s", c.phases, &out)
	}
	for _, phase := range []string{"0:" + excused + "x", "0:" + write("{")} {
		green, err := run([]string{phase}, passes, &bytes.Buffer{})
		require.Error(t, err)
		require.False(t, green)
	}
}
