package docs_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// plainExample is how many lines the Example of a package may have: it is to be read at once.
const plainExample = 25

// notRun are the Examples whose output no test can compare, and why.
var notRun = map[string]string{
	"redlock: ExampleWithUptime": "it wants servers that have been up for a lease, and embedded ones never say so",
}

// publicPackages are the folders of the packages that users import, the root among them.
func publicPackages(t *testing.T) (folders []string) {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "go", "list", "./...").Output()
	require.NoError(t, err)
	for path := range strings.FieldsSeq(string(list)) {
		switch folder := ours(path); {
		case strings.HasPrefix(folder, "internal/"), strings.HasPrefix(folder, "examples/"), folder == "spec":
		case folder == "latchkey":
			folders = append(folders, ".")
		default:
			folders = append(folders, folder)
		}
	}
	require.Contains(t, folders, ".")
	require.Contains(t, folders, "rlock")
	return folders
}

// examplesOf parses the file that has all Examples of a package, and sees that no other one has any.
func examplesOf(t *testing.T, folder string, positions *token.FileSet) (*ast.File, []*doc.Example) {
	t.Helper()
	path := filepath.Join(folder, "example_test.go")
	require.FileExists(t, path, "a package without an Example")
	tests, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	for _, test := range tests {
		file, err := parser.ParseFile(positions, test, nil, parser.ParseComments)
		require.NoError(t, err)
		require.True(t, test == path || len(doc.Examples(file)) == 0, "%s has an Example", test)
	}
	file, err := parser.ParseFile(positions, path, nil, parser.ParseComments)
	require.NoError(t, err)
	return file, doc.Examples(file)
}

// Every package has a short Example. Each is a whole program as go doc shows it, of what users can import,
// and says what it prints.
func TestExamplesCanBePasted(t *testing.T) {
	positions, excused := token.NewFileSet(), map[string]bool{}
	for _, folder := range publicPackages(t) {
		file, examples := examplesOf(t, folder, positions)
		for _, imported := range file.Imports {
			path, err := strconv.Unquote(imported.Path.Value)
			require.NoError(t, err)
			std := !strings.Contains(path, ".")
			public := ours(path) != "" && !strings.Contains(path, "/internal/")
			known := std || public || path == "github.com/redis/rueidis"
			require.True(t, known, "%s: users cannot import %s", folder, path)
		}
		plain := 0
		for _, example := range examples {
			what := folder + ": Example" + example.Name
			require.NotNil(t, example.Play, "%s: it needs what go doc does not show with it", what)
			if _, ok := notRun[what]; ok {
				excused[what] = true
			} else {
				require.NotEmpty(t, example.Output, "%s: its output is not compared", what)
			}
			if example.Name == "" {
				plain++
				body := example.Code.(*ast.BlockStmt).List
				lines := positions.Position(body[len(body)-1].End()).Line - positions.Position(body[0].Pos()).Line + 1
				require.LessOrEqual(t, lines, plainExample, "%s: too long", what)
			}
		}
		require.Equal(t, 1, plain, "%s: an Example of the package", folder)
	}
	require.Len(t, excused, len(notRun), "an Example that is not there need not be excused")
}

// The files of the Examples compile in a module of somebody else, as they stand, and print there what they
// say: also the second time, when Redis has what the first one left. That module needs what ours needs, so
// that nothing has to be downloaded.
func TestExamplesRunElsewhere(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	elsewhere := t.TempDir()
	write := func(name string, text []byte) {
		t.Helper()
		path := filepath.Join(elsewhere, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	read := func(name string) []byte {
		t.Helper()
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return text
	}
	const module = "github.com/latchkey-go/latchkey"
	needs, ok := strings.CutPrefix(string(read("go.mod")), "module "+module+"\n")
	require.True(t, ok)
	write("go.sum", read("go.sum"))
	write("go.mod", []byte("module example.invalid/pasted\n"+needs+
		"\nrequire "+module+" v0.0.0\nreplace "+module+" => "+strconv.Quote(filepath.ToSlash(here))+"\n"))
	runs := map[string]int{} // how many Examples of each package
	for _, folder := range publicPackages(t) {
		_, examples := examplesOf(t, folder, token.NewFileSet())
		name := strings.ReplaceAll(folder, ".", "latchkey")
		write(filepath.Join(name, "example_test.go"), read(filepath.Join(folder, "example_test.go")))
		for _, example := range examples {
			if _, ok := notRun[folder+": Example"+example.Name]; !ok {
				runs[name]++
			}
		}
	}
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = elsewhere
		return c
	}
	builds := [][]string{{"vet", "./..."}, {"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", "built/", "./..."}}
	if redistest.Brief() || redistest.Raced() { // they compile there. Each package has run its own
		builds, runs = builds[:1], nil
	}
	for _, args := range builds {
		c := command("go", args...)
		c.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS=-mod=mod")
		output, err := c.CombinedOutput()
		require.NoError(t, err, "go %v: %s", args, output)
	}
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		urls := []string{s.URL(), redistest.NewEmbedded(t).URL(), redistest.NewEmbedded(t).URL()}
		for name, n := range runs {
			for _, which := range []string{"first", "second"} {
				c := command(filepath.Join(elsewhere, "built", name+".test"), "-test.v", "-test.timeout", "1m")
				c.Env = append(os.Environ(), "REDIS_URL="+urls[0], "REDIS_URLS="+strings.Join(urls, ","))
				output, err := c.CombinedOutput()
				require.NoError(t, err, "%s, the %s time: %s", name, which, output)
				require.Equal(t, n, strings.Count(string(output), "--- PASS: Example"), "%s: %s", name, output)
			}
		}
	})
}
