// Command tests says what a run of tests has shown, and what it could not: how many tests ran, what the others
// need, and how that is installed here. It reads the files that gotestsum --jsonfile has written:
//
//	go run ./tools/tests FILE...
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tests:", err)
		os.Exit(1)
	}
}

func run(names []string, out io.Writer) error {
	t := newTally()
	for _, name := range names {
		f, err := os.Open(name) //nolint:gosec // make names it
		if err != nil {
			return err
		}
		err = errors.Join(t.read(f), f.Close())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	_, err := fmt.Fprintln(out, t.String(installer()))
	return err
}

// tally is what the tests of a run have said. Parts of tests count as tests, as gotestsum counts them.
type tally struct {
	ran, failed int
	skipped     map[string]int // by what they need
	said        map[[2]string]string
}

func newTally() *tally { return &tally{skipped: map[string]int{}, said: map[[2]string]string{}} }

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output string }

// reason is where a test says why it is skipped.
var reason = regexp.MustCompile(`\.go:\d+: (.*)\n`)

func (t *tally) read(in io.Reader) error {
	for d := json.NewDecoder(in); ; {
		var e event
		if err := d.Decode(&e); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		test := [2]string{e.Package, e.Test}
		switch e.Action {
		case "output":
			if e.Test != "" && reason.MatchString(e.Output) {
				t.said[test] = reason.FindStringSubmatch(e.Output)[1]
			}
			continue
		case "pass", "fail", "skip":
		default:
			continue
		}
		switch said := t.said[test]; {
		case e.Test == "": // a package
		case e.Action == "skip":
			need, ok := strings.CutPrefix(said, "needs ")
			if !ok {
				need = "what it says: " + said
			}
			t.skipped[need]++
		case e.Action == "fail":
			t.ran++
			t.failed++
		default:
			t.ran++
		}
		delete(t.said, test)
	}
}

// String is a line, or two where something can be installed: system says by what.
func (t *tally) String(system string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s ran, %d failed", plural(t.ran, "test"), t.failed)
	needs := slices.SortedFunc(maps.Keys(t.skipped), func(a, b string) int { return t.skipped[b] - t.skipped[a] })
	for i, need := range needs {
		text.WriteString([]string{"; skipped: ", ", "}[min(i, 1)])
		fmt.Fprintf(&text, "%d need %s", t.skipped[need], need)
	}
	if command := install(system, needs); command != "" {
		text.WriteString("\nto run them as well: " + command)
	}
	return text.String()
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

// tools are the words by which a need names what can be installed, in the order in which they are.
var tools = []string{"redis-server", "C compiler", "valgrind", "java", "mvn"}

// systems are how each is installed, by the command that the system has for it.
var systems = map[string]struct {
	command  string
	packages map[string]string
}{
	"apt-get": {"sudo apt-get install", map[string]string{
		"redis-server": "redis-server", "C compiler": "gcc libc6-dev", "valgrind": "valgrind", "java": "default-jdk-headless", "mvn": "maven",
	}},
	"dnf": {"sudo dnf install", map[string]string{
		"redis-server": "valkey-compat-redis", "C compiler": "gcc", "valgrind": "valgrind", "java": "java-21-openjdk-devel", "mvn": "maven",
	}},
	"pacman": {"sudo pacman -S", map[string]string{
		"redis-server": "redis", "C compiler": "gcc", "valgrind": "valgrind", "java": "jdk21-openjdk", "mvn": "maven",
	}},
	"apk": {"sudo apk add", map[string]string{
		"redis-server": "redis", "C compiler": "gcc musl-dev", "valgrind": "valgrind", "java": "openjdk21", "mvn": "maven",
	}},
	"brew": {"brew install", map[string]string{"redis-server": "redis", "C compiler": "gcc", "java": "openjdk", "mvn": "maven"}},
}

// installer is the command that installs programs here; empty: there is none that we know.
func installer() string {
	candidates := []string{"apt-get", "dnf", "pacman", "apk", "brew"}
	if runtime.GOOS == "darwin" {
		candidates = []string{"brew"}
	}
	for _, name := range candidates {
		if _, err := exec.LookPath(name); err == nil {
			return name
		}
	}
	return ""
}

// install is the one command that installs what is needed.
func install(system string, needs []string) string {
	s, known := systems[system]
	if !known {
		return ""
	}
	command := s.command
	for _, tool := range tools {
		if name := s.packages[tool]; name != "" && slices.ContainsFunc(needs, func(need string) bool { return strings.Contains(need, tool) }) {
			command += " " + name
		}
	}
	if command == s.command {
		return ""
	}
	return command
}
