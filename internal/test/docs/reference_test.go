package docs_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// errorsToDo has, for each exported error, which calls return it, and what their caller does.
var errorsToDo = map[string][2]string{
	"latchkey.ErrNotAcquired":    {"`TryLock`, `TryLockFor`, `TryAcquire`, `TryDo`, `Drain`", "do something else, or try later; `*latchkey.Error` has the holder"},
	"latchkey.ErrNotHeld":        {"`Unlock`, `Release`, `Attach`, `Downgrade`", "mend the program: a hold is unlocked once"},
	"latchkey.ErrLost":           {"`Hold.Err`, the cause of a hold's context, `Unlock`, `Do`", "stop the work, and let the store compare tokens; [why](operations.md#errlost)"},
	"latchkey.ErrReleased":       {"`Hold.Err`, the cause of a hold's context", "nothing: the hold was unlocked"},
	"latchkey.ErrReentered":      {"`Lock` with `WithoutReentry`, `Run` and `Do` inside their own function", "mend the program: its caller holds the lock"},
	"latchkey.ErrClosed":         {"every call after `Close` or `Shutdown`", "end: the process is about to"},
	"latchkey.ErrTooManyWaiters": {"`Lock`, `Acquire`, `Await`", "shed load, or hold for a shorter time"},
	"latchkey.ErrWrongType":      {"every call that reads or writes the key", "one name for one kind of thing; [which](operations.md#errwrongtype)"},
	"latchkey.ErrUnavailable":    {"every call that asks Redis", "try again; [what the cause says](operations.md#errunavailable)"},
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

// docs/reference.md has every exported error and every option, as their comments say it.
// LATCHKEY_UPDATE=1 writes it anew.
func TestReference(t *testing.T) {
	var errs, options []string
	unknown := map[string]bool{}
	for name := range errorsToDo {
		unknown[name] = true
	}
	for _, room := range public() {
		p := documented(t, room)
		for _, v := range p.Vars {
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
		functions := slices.Clone(p.Funcs)
		for _, typ := range p.Types {
			functions = append(functions, typ.Funcs...)
		}
		for _, f := range functions {
			if !strings.HasPrefix(f.Name, "With") || f.Decl.Type.Results == nil || !strings.HasSuffix(types.ExprString(f.Decl.Type.Results.List[0].Type), "Option") {
				continue
			}
			first := sentences(strings.Join(strings.Fields(f.Doc), " "))[0]
			options = append(options, fmt.Sprintf("| `%s.%s` | `%s` | %s | %s |\n",
				room, f.Name, types.ExprString(f.Decl.Type.Results.List[0].Type), cell(strings.TrimPrefix(first, f.Name+" ")), bounds(f.Doc)))
		}
	}
	require.Empty(t, unknown, "errors that are gone")
	require.Greater(t, len(errs), 25)
	require.Greater(t, len(options), 50)
	want := "# Errors and options\n\nAll errors that you can compare with `errors.Is`, and all options, as the comments in the code say it. A test writes this page:\n" +
		"`LATCHKEY_UPDATE=1 go test -run TestReference ./internal/test/docs`.\n\n" +
		"## Errors\n\n| error | when | returned by | what you do |\n|---|---|---|---|\n" + strings.Join(errs, "") +
		"\n## Options\n\n| option | type | what it does | bounds and default |\n|---|---|---|---|\n" + strings.Join(options, "")
	const path = "docs/reference.md"
	if os.Getenv("LATCHKEY_UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
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
