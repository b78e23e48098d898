package docs_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// program is one of the documents that runs.
type program struct {
	*exec.Cmd

	lines  chan string  // what it has printed; closed when it has ended
	errors bytes.Buffer // what it has complained of, once it has ended
}

// startProgram runs one of the programs that the documents show.
func startProgram(t *testing.T, file, url string) *program {
	t.Helper()
	p := &program{Cmd: exec.CommandContext(t.Context(), file), lines: make(chan string, 100)}
	p.Env = append(os.Environ(), "REDIS_URL="+url, "LISTEN=127.0.0.1:0")
	p.Stderr = &p.errors
	stdout, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		for range p.lines {  // until the pipe is closed
		}
		_ = p.Wait()
	})
	return p
}

func (p *program) next(t *testing.T) string {
	t.Helper()
	select {
	case line, ok := <-p.lines:
		require.True(t, ok, "it has ended")
		return line
	case <-time.After(30 * time.Second):
		require.FailNow(t, "it says nothing")
		return ""
	}
}

// terminated sends SIGTERM, and returns when it has ended by itself, without an error.
func (p *program) terminated(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	p.ended(t)
}

func (p *program) ended(t *testing.T) (rest []string) {
	t.Helper()
	for line := range p.lines {
		rest = append(rest, line)
	}
	require.NoError(t, p.Wait(), p.errors.String())
	return rest
}

// programs of the documents, by their folders below examples, and what each has to show.
var programs = map[string]func(t *testing.T, start func() *program){
	"recipes/cron": func(t *testing.T, start func() *program) {
		a, b := start(), start()
		var ticks []string // "report of 12:00:01 by process 17"
		for len(ticks) < 4 {
			select {
			case line := <-a.lines:
				ticks = append(ticks, strings.Fields(line)[2])
			case line := <-b.lines:
				ticks = append(ticks, strings.Fields(line)[2])
			case <-time.After(30 * time.Second):
				require.FailNow(t, "no report")
			}
		}
		for i := range ticks[1:] {
			require.NotContains(t, ticks[:i+1], ticks[i+1], "once a tick")
		}
		a.terminated(t)
		b.terminated(t)
	},
	"recipes/leader": func(t *testing.T, start func() *program) {
		first := start()
		require.Contains(t, first.next(t), "leads")
		second := start()
		first.terminated(t)
		require.Contains(t, second.next(t), "leads")
		third := start()
		require.NoError(t, second.Process.Kill())
		require.Contains(t, third.next(t), "leads")
		third.terminated(t)
	},
	"recipes/uploads": func(t *testing.T, start func() *program) {
		a, b := start(), start()
		require.Len(t, append(a.ended(t), b.ended(t)...), 16)
	},
	"recipes/reload": func(t *testing.T, start func() *program) {
		a, b := start(), start()
		for _, p := range []*program{a, b} {
			require.Equal(t, "serves", p.next(t))
			require.NoError(t, p.Process.Signal(syscall.SIGHUP))
		}
		for _, p := range []*program{a, b} {
			require.Equal(t, "reloaded", p.next(t))
			p.terminated(t)
		}
	},
	"recipes/value": func(t *testing.T, start func() *program) {
		require.Equal(t, []string{"alice has 70"}, start().ended(t))
	},
	"recipes/health": func(t *testing.T, start func() *program) {
		p := start()
		address := strings.Fields(p.next(t))[2]
		for path, says := range map[string]string{"/ready": "", "/debug/vars": `"locks_lost": 0`} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
			require.NoError(t, err)
			response, err := http.DefaultTransport.RoundTrip(request)
			require.NoError(t, err)
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, text)
			require.Contains(t, string(text), says)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		p.terminated(t)
	},
	"deploy": func(t *testing.T, start func() *program) {
		a := start()
		require.Contains(t, a.next(t), "imports, with token")
		b := start()
		a.terminated(t) // by itself, without an error
		require.Contains(t, b.next(t), "imports, with token")
		b.terminated(t)
	},
	"readme": func(t *testing.T, start func() *program) {
		a, b := start(), start()
		said := append(a.ended(t), b.ended(t)...)
		require.Len(t, said, 2)
		require.Contains(t, said[0], "charged, with token")
		require.NotEqual(t, said[0], said[1])
	},
	"tutorial/lock": func(t *testing.T, start func() *program) {
		first := start()
		require.Contains(t, first.next(t), "I have the lock")
		second := start()
		require.NoError(t, first.Process.Signal(redistest.Stop))
		require.Contains(t, second.next(t), "I have the lock", "once the lease of the first one is over")
		require.NoError(t, first.Process.Signal(redistest.Continue))
		require.Regexp(t, `latchkey: "stock": lost: `+noticed, first.refused(t))
		require.NoError(t, second.Process.Kill())
		require.Contains(t, start().next(t), "I have the lock", "a killed process keeps nothing for longer than its lease")
	},
	"tutorial/fence": func(t *testing.T, start func() *program) {
		first := start()
		require.Contains(t, first.next(t), "I have the lock")
		require.NoError(t, first.Process.Signal(redistest.Stop))
		second := start()
		require.Contains(t, second.next(t), "I have the lock")
		require.Equal(t, []string{"written"}, second.ended(t))
		require.NoError(t, first.Process.Signal(redistest.Continue))
		require.Regexp(t, `latchkey: "stock": stale token; lost: `+noticed, first.refused(t))
	},
}

// noticed is how a process that was stopped past its lease learns of that: by its clock, or by a renewal.
const noticed = `(the lease ran out before it was renewed|it is no longer this hold's in Redis)`

// refused returns what a program complained of that ended with an error.
func (p *program) refused(t *testing.T) string {
	t.Helper()
	for range p.lines { // until it has ended
	}
	var status *exec.ExitError
	require.ErrorAs(t, p.Wait(), &status)
	return p.errors.String()
}

// A document has each program as it stands, and each does what it says.
func TestPrograms(t *testing.T) {
	redistest.Together(t)
	files, err := filepath.Glob("examples/*/main.go")
	require.NoError(t, err)
	below, err := filepath.Glob("examples/*/*/main.go")
	require.NoError(t, err)
	folders := map[string]bool{}
	for _, file := range slices.Concat(files, below) {
		folders[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "examples/")] = true
	}
	for _, other := range []string{"fencedsql", "metrics"} { // which are modules of their own
		delete(folders, other)
	}
	require.Len(t, folders, len(programs))
	built := t.TempDir()
	overlay := givenURL(t, "examples/readme/main.go")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", overlay, "-o", built, "./examples/recipes/...", "./examples/readme", "./examples/deploy").CombinedOutput()
	require.NoError(t, err, "%s", output)
	tutorial := t.TempDir() // its programs have names of others
	output, err = exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", tutorial, "./examples/tutorial/...").CombinedOutput()
	require.NoError(t, err, "%s", output)
	for folder, shows := range programs {
		t.Run(folder, func(t *testing.T) {
			redistest.Together(t)
			kind, name, found := strings.Cut(folder, "/")
			page, file := "docs/"+kind+".md", filepath.Join(built, name)
			switch {
			case !found:
				page, file = "README.md", filepath.Join(built, kind)
			case kind == "tutorial":
				file = filepath.Join(tutorial, name)
			}
			s := redistest.New(t)
			if folder == "deploy" { // which no document has as a whole
				shows(t, func() *program { return startProgram(t, filepath.Join(built, folder), s.URL()) })
				return
			}
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			source, err := os.ReadFile("examples/" + folder + "/main.go")
			require.NoError(t, err)
			comment, code, found := strings.Cut(string(source), "package main\n")
			require.True(t, found)
			require.Regexp(t, `^// [A-Z].*\.\n$`, comment, "one line that says what it is")
			require.Contains(t, string(text), "\n```go\npackage main\n"+code+"```\n", "%s has the program", page)
			shows(t, func() *program { return startProgram(t, file, s.URL()) })
		})
	}
}

// givenURL makes an overlay in which a program of ours takes its URL from the environment.
func givenURL(t *testing.T, file string) (overlay string) {
	t.Helper()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(source), `"`+readmeURL+`"`)
	text := strings.Replace(string(source), `"`+readmeURL+`"`, `os.Getenv("REDIS_URL")`, 1)
	text = strings.Replace(text, "\t\"log\"\n", "\t\"log\"\n\t\"os\"\n", 1)
	dir := t.TempDir()
	here, err := filepath.Abs(file)
	require.NoError(t, err)
	other := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(other, []byte(text), 0o600))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{here: other}})
	require.NoError(t, err)
	overlay = filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	return overlay
}
