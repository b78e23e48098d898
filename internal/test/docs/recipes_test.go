package docs_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// program is a recipe that runs.
type program struct {
	*exec.Cmd
	lines chan string // what it has printed; closed when it has ended
}

// startRecipe runs one of the programs of examples/recipes.
func startRecipe(t *testing.T, file, url string) *program {
	t.Helper()
	p := &program{Cmd: exec.CommandContext(t.Context(), file), lines: make(chan string, 100)}
	p.Env = append(os.Environ(), "REDIS_URL="+url, "LISTEN=127.0.0.1:0")
	p.Stderr = os.Stderr
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
	require.NoError(t, p.Wait())
	return rest
}

// recipes are what each program has to show.
var recipes = map[string]func(t *testing.T, start func() *program){
	"cron": func(t *testing.T, start func() *program) {
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
	"leader": func(t *testing.T, start func() *program) {
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
	"uploads": func(t *testing.T, start func() *program) {
		a, b := start(), start()
		require.Len(t, append(a.ended(t), b.ended(t)...), 16)
	},
	"reload": func(t *testing.T, start func() *program) {
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
	"value": func(t *testing.T, start func() *program) {
		require.Equal(t, []string{"alice has 70"}, start().ended(t))
	},
	"health": func(t *testing.T, start func() *program) {
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
}

// docs/recipes.md has each program as it stands, and each does what it says.
func TestRecipes(t *testing.T) {
	redistest.Together(t)
	page, err := os.ReadFile("docs/recipes.md")
	require.NoError(t, err)
	files, err := filepath.Glob("examples/recipes/*/main.go")
	require.NoError(t, err)
	require.Len(t, files, len(recipes))
	programs := t.TempDir()
	output, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", programs, "./examples/recipes/...").CombinedOutput()
	require.NoError(t, err, "%s", output)
	for name, shows := range recipes {
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile("examples/recipes/" + name + "/main.go")
			require.NoError(t, err)
			comment, code, found := strings.Cut(string(source), "package main\n")
			require.True(t, found)
			require.Regexp(t, `^// [A-Z].*\.\n$`, comment, "one line that says what it is")
			require.Contains(t, string(page), "\n```go\npackage main\n"+code+"```\n", "docs/recipes.md has the program")
			s := redistest.New(t)
			shows(t, func() *program { return startRecipe(t, filepath.Join(programs, name), s.URL()) })
		})
	}
}
