package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// readmeProcesses is how many run what the documents show, at the same time: callers of docs/primitives/once.md share one
// result.
const readmeProcesses = 8

// readmeURL is where the documents say that Redis is.
const readmeURL = "redis://localhost:6379"

// readmeProgram is what is around the snippets: one function for each, one after the other. What a snippet
// calls is here, and so is what it takes from the one before.
const readmeProgram = `package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

var (
	_ = []any{errors.Join, signal.Stop, syscall.SIGTERM, rueidis.NewClient, time.Hour, barrier.New, countdown.New, fairlock.New, fence.Set, leader.New, once.New, rlock.New, rueidisclient.New, rwlock.New, semaphore.New}

	ctx   = context.Background()
	url   = os.Args[1]
	address = strings.TrimPrefix(url, "redis://")
	shard = "shard-" + os.Args[2]
	done  = errors.New("done")
)

func say(what ...any) error { _, err := fmt.Println(what...); return err }

func charge(ctx context.Context, token int64) error { return errors.Join(ctx.Err(), say("charged", token)) }
func use(token []byte) error                        { return say("used", string(token)) }
func work(ctx context.Context, c *latchkey.Client) error { return errors.Join(c.Check(ctx), say("worked")) }
var local sync.Mutex
func indexLocally(ctx context.Context, page int) error { local.Lock(); defer local.Unlock(); return ctx.Err() }
func index(ctx context.Context, page int) error           { return ctx.Err() }
func saveState(ctx context.Context, page int) error       { return ctx.Err() }
func freshToken() string                                  { return "" }
const old = "spent"

func load(context.Context) (string, error) { return old, nil }

func refresh(ctx context.Context) ([]byte, error) {
	time.Sleep(time.Second) // until all have come
	return []byte("token"), errors.Join(ctx.Err(), say("refreshed"))
}
func report(ctx context.Context, tick time.Time, token int64) error {
	return errors.Join(ctx.Err(), say("reported", tick.UnixMilli()))
}

func main() {
	c, err := latchkey.Open(url)
	for _, snippet := range snippets[os.Args[3]] {
		if err == nil {
			err = snippet(c)
		}
	}
	if err == nil {
		err = c.Shutdown(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var snippets = map[string][]func(c *latchkey.Client) error{
`

// Every Go snippet of the documents compiles as it stands there, checks its errors, and does what the
// document says when eight processes run it at the same time.
func TestReadmeSnippets(t *testing.T) {
	snippets := snippetsOf(t)
	program := buildSnippets(t, snippets)
	for document := range snippets {
		t.Run(document, func(t *testing.T) {
			for _, snippet := range snippets[document] {
				checkSnippet(t, snippet)
			}
			redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
				said := runSnippets(t, program, document, s.URL())
				switch document {
				case "docs/tutorial.md":
					require.Len(t, slices.Compact(said["charged"]), readmeProcesses, "each charge has a token of its own")
				case "docs/primitives/once.md":
					require.Len(t, said["used"], readmeProcesses)
					require.Less(t, len(said["refreshed"]), readmeProcesses, "of those that come together one refreshes")
					require.NotEmpty(t, said["reported"])
					require.Len(t, slices.Compact(slices.Clone(said["reported"])), len(said["reported"]), "once a tick")
				}
			})
		})
	}
}

// documents are README and what it leads to.
func documents(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("*.md")
	require.NoError(t, err)
	more, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	pages, err := filepath.Glob("docs/primitives/*.md")
	require.NoError(t, err)
	appendix, err := filepath.Glob("docs/appendix/*.md")
	require.NoError(t, err)
	require.Contains(t, all, "README.md")
	return slices.Concat(all, more, pages, appendix)
}

// snippetsOf returns what is Go in each document that has some.
func snippetsOf(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, document := range documents(t) {
		if document == "docs/web.md" {
			continue // of a module of its own, whose Examples it shows: web/docs_test.go
		}
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, found := range regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllSubmatch(text, -1) {
			if !bytes.HasPrefix(found[1], []byte("package ")) { // see TestRecipes
				all[document] = append(all[document], string(found[1]))
			}
		}
	}
	require.NotEmpty(t, all["docs/primitives/locks.md"])
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 100, "README.md is what a visitor reads first: the rest is in docs")
	return all
}

// checkSnippet fails when a snippet is not formatted, or does not look at an error. Close alone has none.
func checkSnippet(t *testing.T, snippet string) {
	t.Helper()
	formatted, err := format.Source([]byte(snippet))
	require.NoError(t, err, snippet)
	require.Equal(t, string(formatted), snippet)
	whole := "func f() {\n" + snippet + "}\n"
	if wholeFunction.MatchString(snippet) {
		whole = snippet
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+whole, 0)
	require.NoError(t, err, snippet)
	if strings.Contains(snippet, "{ err = ") {
		// Where the result has no name, the compiler is content, and the error is lost.
		require.Contains(t, whole, ") (err error) {", "a defer sets a result that the reader has to name:\n%s", snippet)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		var call ast.Expr
		switch n := n.(type) {
		case *ast.ExprStmt:
			call = n.X
		case *ast.DeferStmt:
			call = n.Call
		case *ast.AssignStmt: // of what it gets the error is last
			last, named := n.Lhs[len(n.Lhs)-1].(*ast.Ident)
			require.False(t, named && last.Name == "_", "an error is not looked at:\n%s", snippet)
		}
		if call, ok := call.(*ast.CallExpr); ok {
			selector, method := call.Fun.(*ast.SelectorExpr) // what is no method is of this file, and has no error
			require.False(t, method && selector.Sel.Name != "Close", "an error is not looked at:\n%s", snippet)
		}
		return true
	})
}

// wholeFunction is for a snippet that is a function. It takes its arguments by their names from what is
// around the others.
var wholeFunction = regexp.MustCompile(`^func (\w+)\(([^)]*)\)`)

// callOf is the call of a snippet that is a function.
func callOf(function []string) string {
	var arguments []string
	for parameter := range strings.SplitSeq(function[2], ", ") {
		name, _, _ := strings.Cut(parameter, " ")
		arguments = append(arguments, name)
	}
	return "err = " + function[1] + "(" + strings.Join(arguments, ", ") + ")\n"
}

// buildSnippets compiles the program of all snippets. An argument says whose document it runs.
func buildSnippets(t *testing.T, snippets map[string][]string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "snippets")
	overlay, source := programOf(t, snippets)
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", overlay, "-o", program, "./docs")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s\n%s", output, source)
	return program
}

// programOf makes one program of the snippets of all documents, ./docs: a package of this module that exists
// only for a go command with this overlay. Its folder exists, because go vet goes there.
func programOf(t *testing.T, snippets map[string][]string) (overlay, text string) {
	t.Helper()
	source, functions := bytes.NewBufferString(readmeProgram), ""
	for _, document := range slices.Sorted(maps.Keys(snippets)) {
		_, _ = fmt.Fprintf(source, "%q: {\n", document) // a buffer
		for _, snippet := range snippets[document] {
			if function := wholeFunction.FindStringSubmatch(snippet); function != nil {
				functions += strings.ReplaceAll(snippet, `"`+readmeURL+`"`, "url")
				snippet = callOf(function)
			}
			if strings.Contains(snippet, readmeURL) { // it has a client of its own
				source.WriteString("func(*latchkey.Client) (err error) {\n")
				snippet = strings.ReplaceAll(snippet, `"`+readmeURL+`"`, "url")
			} else {
				source.WriteString("func(c *latchkey.Client) (err error) {\n")
			}
			if (strings.Contains(snippet, " lock.") || strings.Contains(snippet, ", lock)")) && !strings.Contains(snippet, "lock, err :=") {
				source.WriteString("lock, err := rlock.New(c, \"orders:42\")\nif err != nil { return err }\n")
			}
			source.WriteString(snippet + "return err\n},\n")
		}
		source.WriteString("},\n")
	}
	source.WriteString("}\n" + functions)
	here, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(file, source.Bytes(), 0o600))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, "docs", "main.go"): file}})
	require.NoError(t, err)
	overlay = filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	return overlay, source.String()
}

// runSnippets runs the snippets of a document in several processes, and returns what they have said, by its first word.
func runSnippets(t *testing.T, program, document, url string) map[string][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group errgroup.Group
	var outputs [readmeProcesses]bytes.Buffer
	for i := range outputs {
		group.Go(func() error {
			var complaint bytes.Buffer
			process := exec.CommandContext(ctx, program, url, fmt.Sprint(i%3+1), document)
			process.Stdout, process.Stderr = &outputs[i], &complaint
			if err := process.Run(); err != nil {
				return fmt.Errorf("%w: %s", err, &complaint)
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	said := map[string][]string{}
	for i := range outputs {
		for line := range strings.Lines(outputs[i].String()) {
			what, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			said[what] = append(said[what], rest)
		}
	}
	for what := range said {
		slices.Sort(said[what])
	}
	return said
}

// Every link of the documents to a file of the repository, or to a heading, leads there; every "make" in them
// is one of Makefile.
func TestReadmeLinks(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	for _, document := range documents(t) {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, link := range regexp.MustCompile(`\]\(([^)#]*)#?([^)]*)\)`).FindAllStringSubmatch(string(text), -1) {
			target, heading := filepath.Join(filepath.Dir(document), link[1]), link[2]
			if strings.Contains(link[1], "://") {
				continue
			}
			if link[1] == "" {
				target = document
			}
			require.FileExists(t, target, "a link of %s", document)
			if heading != "" {
				require.True(t, headings(t, target)[heading], "%s: %s has no #%s", document, target, heading)
			}
		}
		for _, goal := range regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllSubmatch(text, -1) {
			known := bytes.Contains(makefile, []byte("\n"+string(goal[1])+":"))
			require.True(t, known, "%s says make %s, which does not exist", document, goal[1])
		}
	}
}

// headings are those of a document, as links write them.
func headings(t *testing.T, document string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	all := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllSubmatch(text, -1) {
		all[anchor(string(found[1]))] = true
	}
	return all
}

// anchor is a heading as links write it.
func anchor(heading string) string {
	plain := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(plain, " ", "-")
}

// What users read is short: 30,000 words, without code.
func TestUsersPagesAreShort(t *testing.T) {
	words := 0
	for _, document := range documents(t) {
		switch {
		case document == "CHANGELOG.md", document == "CONTRIBUTING.md", document == "docs/architecture.md", document == "docs/protocol.md", strings.Contains(document, "appendix"):
			continue // of contributors, or a record
		}
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		words += len(strings.Fields(regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(string(text), "")))
	}
	require.Greater(t, words, 10_000)
	require.LessOrEqual(t, words, 30_000)
}
