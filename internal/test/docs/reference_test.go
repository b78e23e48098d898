package docs_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// errorsToDo has, for each exported error, which calls return it, and what their caller does.
var errorsToDo = map[string][2]string{
	"latchkey.ErrNotAcquired":    {"the `Try` calls of locks and semaphores, `Drain`", "do something else, or try later; `*latchkey.Error` has the `Holder` of a lock"},
	"latchkey.ErrNotHeld":        {"`Unlock`, `Release`, `Attach`, `Downgrade`", "mend the program: a hold is unlocked once"},
	"latchkey.ErrLost":           {"`Hold.Err`, the cause of a hold's context, `Unlock`, `Do`", "stop the work, and let the store compare tokens; [why](emergencies.md#errlost)"},
	"latchkey.ErrReleased":       {"`Hold.Err`, the cause of a hold's context", "nothing: the hold was unlocked"},
	"latchkey.ErrReentered":      {"`Lock` with `WithoutReentry`, `Run` and `Do` inside their own function", "mend the program: its caller holds the lock"},
	"latchkey.ErrClosed":         {"every call after `Close` or `Shutdown`", "end: the process is about to"},
	"latchkey.ErrTooManyWaiters": {"`Lock`, `Acquire`, `Await`", "shed load, or hold for a shorter time"},
	"latchkey.ErrWrongType":      {"every call that reads or writes the key", "one name for one kind of thing; [which](emergencies.md#errwrongtype)"},
	"latchkey.ErrUnavailable":    {"every call that asks Redis", "try again; [what the cause says](emergencies.md#errunavailable)"},
	"latchkey.ErrUnknownOutcome": {"`Unlock`, `Release`, `Detach`, `ForceUnlock`, and calls that change a number", "ask (`Inspect`, `Available`, `Count`) before you repeat it"},
	"latchkey.ErrDeadlock":       {"`Lock` with `WithDeadlockCheck`", "give back what you hold, and take the locks in one order, as `multilock` does"},
	"latchkey.ErrNotReplicated":  {"`Lock`, `TryLock`, `Acquire` with `WithReplicas`", "try again; look at the replicas"},
	"latchkey.ErrNotRun":         {"`Do`, `TryDo`, `TryDoFor`", "repeat it if you want: nothing was done"},
	"latchkey.ErrInvalid":        {"constructors, and calls with an argument out of range", "mend the argument that the text names"},
	"semaphore.ErrNotSet":        {"`Acquire`, `Available`, `AddCapacity`, `AddPermits`, `Counting.Release`", "`WithCapacity` in each process, or `WithWaitForSet`"},
	"semaphore.ErrCapacity":      {"`Acquire`, `TryAcquire`", "a smaller request, or `SetCapacity`"},
	"countdown.ErrNotSet":        {"`Await`, `CountDown`", "`WithCount` in each process, or `WithWaitForSet`"},
	"countdown.ErrExpired":       {"`Await`, `CountDown`", "give up, or set the latch again"},
	"countdown.ErrDeleted":       {"`Await`", "end the wait"},
	"barrier.ErrBroken":          {"`Await`, `Join`", "`Reset`, once all parties know it"},
	"barrier.ErrForgotten":       {"`Await`", "begin the step again, if it can be repeated"},
	"barrier.ErrParties":         {"`Await`", "give the same number in all processes"},
	"leader.ErrResigned":         {"the cause of a term's context", "return: the next candidate waits"},
	"once.ErrDone":               {"`TryDo`", "nothing: it is done"},
	"once.ErrNotDone":            {"`Result`", "wait for it with `Do`"},
	"once.ErrSuperseded":         {"`Do`, `Share`, `WithOnError`", "ask the store what counts"},
	"once.ErrGivenUp":            {"`Do`, `WithOnError`", "mend the function, and use another name or edition"},
	"rwlock.ErrUpgrade":          {"`Write().Lock` with the context of a read hold", "unlock, lock `Write()`, and look again"},
	"fence.ErrStale":             {"`Set`, `Eval`", "stop: another holder came"},
}

// public are the packages that users import, with their directories.
func public() (rooms []string) {
	for _, room := range primitives {
		if !strings.HasPrefix(room, "internal/") {
			rooms = append(rooms, room)
		}
	}
	return append(rooms, "rueidisclient")
}

// documented returns what go doc knows of a package of this module.
func documented(t *testing.T, room string) *doc.Package {
	t.Helper()
	dir := room
	if room == "latchkey" {
		dir = "."
	}
	files := token.NewFileSet()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var parsed []*ast.File
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			file, err := parser.ParseFile(files, dir+"/"+e.Name(), nil, parser.ParseComments)
			require.NoError(t, err)
			parsed = append(parsed, file)
		}
	}
	p, err := doc.NewFromFiles(files, parsed, "github.com/latchkey-go/latchkey/"+room)
	require.NoError(t, err)
	return p
}

var (
	brackets  = regexp.MustCompile(`\[\*?([A-Za-z.]+)\]`)
	errorName = regexp.MustCompile(`^(Err[A-Z][A-Za-z]*)( is| says that|:)? ?`)
	sentence  = regexp.MustCompile(`[.:] (?:[A-Z0-9])`)
)

// cell is a comment as a cell of a table: one line, without links.
func cell(text string) string {
	text = brackets.ReplaceAllString(strings.Join(strings.Fields(text), " "), "`$1`")
	return strings.ReplaceAll(strings.TrimSuffix(text, "."), "|", "\\|")
}

// sentences splits a paragraph.
func sentences(text string) (all []string) {
	for text != "" {
		end := len(text)
		if at := sentence.FindStringIndex(text); at != nil && text[at[0]] == '.' {
			end = at[0] + 1
		} else if i := strings.Index(text, ". "); i >= 0 {
			end = i + 1
		}
		all = append(all, strings.TrimSpace(text[:end]))
		text = strings.TrimSpace(text[end:])
	}
	return all
}

// bounds are the sentences of an option's comment that say what it may be, and what it is without.
func bounds(text string) string {
	var found []string
	for _, s := range sentences(strings.Join(strings.Fields(text), " ")) {
		if strings.Contains(s, "efault") || regexp.MustCompile(`^(From|At least|More than|At most) `).MatchString(s) {
			found = append(found, s)
		}
	}
	return cell(strings.Join(found, " "))
}

// docs/reference.md has every exported error, as its comment says it. LATCHKEY_UPDATE=1 writes it anew.
func TestReference(t *testing.T) {
	var errs []string
	unknown := map[string]bool{}
	for name := range errorsToDo {
		unknown[name] = true
	}
	for _, room := range public() {
		for _, v := range documented(t, room).Vars {
			for _, spec := range v.Decl.Specs {
				spec := spec.(*ast.ValueSpec)
				name := spec.Names[0].Name
				if !strings.HasPrefix(name, "Err") {
					continue
				}
				text := spec.Doc.Text()
				if text == "" {
					text = v.Doc
				}
				full := room + "." + name
				advice, ok := errorsToDo[full]
				require.True(t, ok, "%s: who returns it, and what does a caller do?", full)
				delete(unknown, full)
				errs = append(errs, fmt.Sprintf("| `%s` | %s | %s | %s |\n", full, cell(errorName.ReplaceAllString(text, "")), advice[0], advice[1]))
			}
		}
	}
	require.Empty(t, unknown, "errors that are gone")
	require.Greater(t, len(errs), 25)
	generated(t, "docs/reference.md", func(string, string) string {
		return "| error | when | returned by | what you do |\n|---|---|---|---|\n" + strings.Join(errs, "")
	})
}

// The pages of the primitives, of the client and of all locks have their options as the comments say them, and
// the Example of the package as a program. Each option is on a page. LATCHKEY_UPDATE=1 writes these parts anew.
func TestPrimitives(t *testing.T) {
	options := map[string][]string{} // rows, by package and type
	missing := map[string]bool{}
	for _, room := range public() {
		p := documented(t, room)
		functions := slices.Clone(p.Funcs)
		for _, typ := range p.Types {
			functions = append(functions, typ.Funcs...)
		}
		for _, f := range functions {
			if !strings.HasPrefix(f.Name, "With") || f.Decl.Type.Results == nil || !strings.HasSuffix(types.ExprString(f.Decl.Type.Results.List[0].Type), "Option") {
				continue
			}
			first := sentences(strings.Join(strings.Fields(f.Doc), " "))[0]
			of := room + "." + types.ExprString(f.Decl.Type.Results.List[0].Type)
			missing[of] = true
			options[of] = append(options[of], fmt.Sprintf("| `%s.%s` | %s | %s |\n", room, f.Name, cell(strings.TrimPrefix(first, f.Name+" ")), bounds(f.Doc)))
		}
	}
	require.Greater(t, len(missing), 10)
	pages, err := filepath.Glob("docs/primitives/*.md")
	require.NoError(t, err)
	programs := 0
	for _, page := range pages {
		generated(t, page, func(kind, of string) string {
			if kind == "program" {
				programs++
				return programOfExample(t, of)
			}
			require.Equal(t, "options", kind, page)
			var rows []string
			for _, one := range strings.Fields(of) {
				require.NotEmpty(t, options[one], "%s: there are no options %s", page, one)
				delete(missing, one)
				rows = append(rows, options[one]...)
			}
			return "| option | what it does | bounds and default |\n|---|---|---|\n" + strings.Join(rows, "")
		})
	}
	require.Empty(t, missing, "options on no page")
	require.Equal(t, len(public())-2, programs, "all but the root and rueidisclient")
}

// generated compares the parts of a page between "<!-- kind of -->" and "<!-- end -->" with what they should be.
func generated(t *testing.T, page string, want func(kind, of string) string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	part := regexp.MustCompile(`(?ms)^<!-- (\w+) ?([^\n]*?) -->\n(.*?)^<!-- end -->$`)
	wanted := part.ReplaceAllStringFunc(string(text), func(found string) string {
		words := part.FindStringSubmatch(found)
		head, _, _ := strings.Cut(found, "\n")
		return head + "\n\n" + want(words[1], words[2]) + "\n<!-- end -->"
	})
	if os.Getenv("LATCHKEY_UPDATE") != "" {
		require.NoError(t, os.WriteFile(page, []byte(wanted), 0o600))
		return
	}
	require.Equal(t, wanted, string(text), page)
}

// programOfExample is the Example of a package as a whole program, with what it prints.
func programOfExample(t *testing.T, room string) string {
	t.Helper()
	files := token.NewFileSet()
	_, examples := examplesOf(t, room, files)
	i := slices.IndexFunc(examples, func(e *doc.Example) bool { return e.Name == "" })
	var source bytes.Buffer
	require.NoError(t, format.Node(&source, files, examples[i].Play))
	return "## A whole program\n\n```go\n" + strings.TrimSuffix(source.String(), "\n") + "\n```\n\nIt prints:\n\n```text\n" + examples[i].Output + "```\n"
}

// What go doc prints of a package is read as a whole, so it stays short: in words.
func TestGoDocIsShort(t *testing.T) {
	all := 0
	for _, room := range public() {
		if room == "latchkey" {
			room = "."
		}
		out, err := exec.CommandContext(t.Context(), "go", "doc", "-all", "./"+room).Output()
		require.NoError(t, err, room)
		words := len(strings.Fields(string(out)))
		require.Positive(t, words, room)
		all += words
		if room == "." {
			require.LessOrEqual(t, words, 5000, "the root")
		}
	}
	require.LessOrEqual(t, all, 18_000)
}
