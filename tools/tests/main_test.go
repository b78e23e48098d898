package main

import (
	"bytes"
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

func TestFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "1")
	require.NoError(t, os.WriteFile(name, []byte(recorded), 0o600))
	var out bytes.Buffer
	require.NoError(t, run([]string{name, name}, &out))
	require.Contains(t, out.String(), "4 tests ran, 2 failed")
	require.Error(t, run([]string{name + "x"}, &out))
	require.NoError(t, os.WriteFile(name, []byte("{"), 0o600))
	require.Error(t, run([]string{name}, &out))
}
