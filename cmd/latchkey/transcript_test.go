//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// TestTranscripts repeats the terminal sessions of testdata. Each begins with what is typed, and ends with
// the transcript. LATCHKEY_UPDATE=1 writes that anew.
//
// The commands of a script, beside those of testscript:
//
//	$ COMMAND        runs a line of a shell, and appends it, what it prints and its status to the transcript
//	& COMMAND        the same in the background, until the script ends; what it prints is left out
//	until COMMAND    runs it until it succeeds
func TestTranscripts(t *testing.T) {
	transcripts(t, "testdata", func() *redistest.Server { return redistest.New(t) })
}

// The sessions of a server that tells all of itself.
func TestTranscriptsOfARedisServer(t *testing.T) {
	redistest.Require(t)
	transcripts(t, filepath.Join("testdata", "redis-server"), func() *redistest.Server { return redistest.NewProcess(t) })
}

func transcripts(t *testing.T, folder string, server func() *redistest.Server) {
	testscript.Run(t, testscript.Params{
		Dir:           folder,
		UpdateScripts: os.Getenv("LATCHKEY_UPDATE") != "",
		Setup: func(e *testscript.Env) error {
			folder := e.Getenv("WORK")
			path, err := os.Executable()
			if err != nil {
				return err
			}
			if err := os.Symlink(path, filepath.Join(folder, "latchkey")); err != nil {
				return err
			}
			e.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("LATCHKEY_REDIS", server().URL())
			e.Setenv(asCommand, "1")
			e.Setenv("GOCOVERDIR", t.TempDir())
			e.Setenv("COLUMNS", "200")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"$": typed, "&": inBackground, "until": until},
	})
}

// shell is a line of a script as a process.
func shell(ts *testscript.TestScript, words []string) *exec.Cmd {
	c := exec.Command("sh", "-c", line(words)) //nolint:noctx // the script ends it
	c.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "LATCHKEY_REDIS", asCommand, "GOCOVERDIR", "COLUMNS", "WORK", "HOME"} {
		c.Env = append(c.Env, name+"="+ts.Getenv(name))
	}
	return c
}

// line has the words as a shell reads them: testscript has taken away their quotes.
func line(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = word; strings.ContainsAny(word, ` ;$*?[("`) {
			quoted[i] = "'" + word + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func typed(ts *testscript.TestScript, _ bool, words []string) {
	c := shell(ts, words)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	_ = c.Run() // its status says it
	text := masked(out.String())
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	session := fmt.Sprintf("$ %s\n%s", line(words), text)
	if status := c.ProcessState.ExitCode(); status != 0 {
		session += fmt.Sprintf("[%d]\n", status)
	}
	f, err := os.OpenFile(ts.MkAbs("transcript"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	ts.Check(err)
	_, err = f.WriteString(session)
	ts.Check(err)
	ts.Check(f.Close())
}

func inBackground(ts *testscript.TestScript, _ bool, words []string) {
	c := shell(ts, append([]string{"exec"}, words...))
	ts.Check(c.Start())
	ts.Defer(func() {
		_ = c.Process.Signal(os.Interrupt)
		over := time.AfterFunc(limit, func() { _ = c.Process.Kill() })
		_ = c.Wait()
		over.Stop()
	})
}

func until(ts *testscript.TestScript, _ bool, words []string) {
	var last []byte
	for began := time.Now(); time.Since(began) < limit; {
		var err error
		if last, err = shell(ts, words).CombinedOutput(); err == nil {
			return
		}
	}
	ts.Fatalf("%s never succeeds: %s", line(words), last)
}

// masks are what differs from run to run.
var masks = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`(\(devel\)|v[0-9][^ ,\n]*)(, commit [0-9a-f]+)?( with changes)?, (go|devel)[0-9][^ \n]*`), "BUILT"},
	{regexp.MustCompile(`\b[A-Z2-7]{10,26}:[0-9]+(:[a-z]+)?`), "OWNER"},
	{regexp.MustCompile(`\b1[0-9]{15}\b`), "TOKEN"},
	{regexp.MustCompile(`"pid":[0-9]+`), `"pid":PID`},
	{regexp.MustCompile(`\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`\b[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]+`), "TIME"},
	{regexp.MustCompile(`\b[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+:[0-9]+\b`), "ADDRESS"},
	{regexp.MustCompile(`\b[0-9]+\.[0-9]+\.[0-9]+\b`), "VERSION"},
	{regexp.MustCompile(`latchkey (unlock|pause) by [^),"\s]+`), "latchkey $1 by USER"},
	{regexp.MustCompile(`\b([0-9]+h)?([0-9]+m)?[0-9.]+(ms|µs|s)\b`), "SPAN"},
	{regexp.MustCompile(`"longest_wait":[0-9.]+`), `"longest_wait":SECONDS`},
	{regexp.MustCompile(`"remaining_seconds":[0-9.]+`), `"remaining_seconds":SECONDS`},
	{regexp.MustCompile(`\b[0-9]{2,7}\b`), "NUMBER"},
	{regexp.MustCompile(`held by (client [A-Z2-7]{16}|.+ on .+ \(pid NUMBER\)( for SPAN)?)`), "held by HOLDER"}, // its record comes after a second
	{regexp.MustCompile(`(redis|localhost|127\.0\.0\.1):[0-9]+`), "ADDRESS"},
	{regexp.MustCompile(` {2,}`), " "},
	{regexp.MustCompile(`[-─]{2,}`), "--"},
	{regexp.MustCompile(` +\n`), "\n"},
}

// masked is a text with words in place of what differs from run to run. Tables lose their widths by that, so
// they are given none.
func masked(text string) string {
	if host, err := os.Hostname(); err == nil && host != "" {
		text = regexp.MustCompile(`\b`+regexp.QuoteMeta(host)+`\b`).ReplaceAllString(text, "HOST")
	}
	for _, m := range masks {
		text = m.pattern.ReplaceAllString(text, m.by)
	}
	return text
}

// What is masked is masked.
func TestMasked(t *testing.T) {
	require.Equal(t, "a OWNER TOKEN SPAN |\n", masked("a  JIJSDQVLLQTOCMX2NNIIH4LA56:11  1795631949127047   9.9s |  \n"))
}
