package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		passed        bool
		again         error
		green, repeat bool
		says          string
	}{
		"passed":               {"", true, nil, true, false, ""},
		"stalled":              {stalledTest, false, nil, true, true, "stalled: p TestA failed while its process stood still for 300ms"},
		"fails alone":          {stalledTest, false, errors.New("exit 1"), false, true, "alone it failed as well"},
		"no stall":             {strings.ReplaceAll(stalledTest, "stood still", "went on"), false, nil, false, false, "did not stand still"},
		"stalled before":       {early, false, nil, false, false, "did not stand still"},
		"another one":          {strings.Replace(stalledTest, `"Package":"p","Output"`, `"Package":"q","Output"`, 1), false, nil, false, false, "did not stand still"},
		"a race":               {strings.Replace(stalledTest, "{", `{"Action":"output","Package":"p","Test":"TestA","Output":"WARNING: DATA RACE\n"}`+"\n{", 1), false, nil, false, false, "DATA RACE"},
		"a package alone":      {stalledTest + `{"Action":"fail","Package":"q"}`, false, nil, false, true, "red: q"},
		"one that never ended": {stalledTest + `{"Action":"run","Package":"p","Test":"TestB"}`, false, nil, false, true, "p TestB has not ended"},
		"nothing ran":          {"", false, nil, false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tally, out, repeated := newTally(), &bytes.Buffer{}, false
			require.NoError(t, tally.read(strings.NewReader(c.text)))
			green := tally.judge(c.passed, func(p, test string) ([]byte, error) {
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

func TestFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "1")
	require.NoError(t, os.WriteFile(name, []byte(recorded), 0o600))
	var out bytes.Buffer
	green, err := run([]string{name, name}, true, nil, &out)
	require.NoError(t, err)
	require.True(t, green)
	require.Contains(t, out.String(), "4 tests ran, 2 failed")
	green, err = run([]string{name}, false, nil, &out)
	require.NoError(t, err)
	require.False(t, green)
	_, err = run([]string{name + "x"}, true, nil, &out)
	require.Error(t, err)
	require.NoError(t, os.WriteFile(name, []byte("{"), 0o600))
	_, err = run([]string{name}, true, nil, &out)
	require.Error(t, err)
}
