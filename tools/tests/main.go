// Command tests says what a run of tests has shown, and what it could not: how many tests ran, what the others
// need, and how that is installed here. It reads the files that gotestsum --jsonfile has written, and is told the
// status of gotestsum for each:
//
//	tests [-race] STATUS:FILE...
//
// It is the judge as well. A test that failed while its process stood still for longer than tests allow
// (internal/test/redistest says when) is run once more, alone, and is reported as stalled. Everything else that failed
// is red.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	race := flag.Bool("race", false, "run again with the race detector")
	flag.Parse()
	again := func(p, test string) ([]byte, error) {
		args := []string{"test", "-count=1", "-vet=off", "-timeout", "30m", "-run", "^" + regexp.QuoteMeta(test) + "$", p}
		if *race {
			args = slices.Insert(args, 1, "-race")
		}
		return exec.Command("go", args...).CombinedOutput() //nolint:gosec,noctx // a test, which has an end of its own
	}
	green, err := run(flag.Args(), again, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests:", err)
	}
	if !green {
		os.Exit(1)
	}
}

// run reports whether all is green, or was so when it was run again.
func run(phases []string, again func(p, test string) ([]byte, error), out io.Writer) (green bool, err error) {
	t := newTally()
	green = true
	for _, phase := range phases {
		status, name, _ := strings.Cut(phase, ":")
		before := len(t.failures)
		f, err := os.Open(name) //nolint:gosec // make names it
		if err != nil {
			return false, err
		}
		err = errors.Join(t.read(f), f.Close())
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		if status != "0" && len(t.failures) == before { // nothing was compiled, say
			_, _ = fmt.Fprintf(out, "red: %s: gotestsum failed, and no test did\n", name)
			green = false
		}
	}
	green = t.judge(again, out) && green
	_, err = fmt.Fprintln(out, t.String(installer()))
	return green && err == nil, err
}

// tally is what the tests of a run have said. Parts of tests count as tests, as gotestsum counts them.
type tally struct {
	ran, failed int
	skipped     map[string]int // by what they need
	said        map[id]string
	begun       map[id]time.Time // of tests that have not ended
	stalls      map[string][]stall
	failures    []failure
	red         map[string]bool          // packages
	grave       map[string]string        // packages with the worst that they said
	spent, took map[string]time.Duration // of the processor, and of time, by package
}

func newTally() *tally {
	return &tally{
		skipped: map[string]int{}, said: map[id]string{}, begun: map[id]time.Time{}, stalls: map[string][]stall{}, red: map[string]bool{}, grave: map[string]string{},
		spent: map[string]time.Duration{}, took: map[string]time.Duration{},
	}
}

// id is that of a test.
type id struct{ Package, Test string }

// failure is a test that failed. Its parts are not counted.
type failure struct {
	id

	began, ended time.Time
}

// stall is how long a package's process stood still within a second.
type stall struct {
	until  time.Time
	length time.Duration
}

// event is a line of go test -json.
type event struct {
	Time                  time.Time
	Action                string
	Package, Test, Output string
	Elapsed               float64 // seconds
}

// grave is what no stall explains, and what running a test alone does not repeat: such a package is red.
var grave = regexp.MustCompile(`WARNING: DATA RACE|^panic: |^fatal error: |found unexpected goroutines`)

// stood is how internal/test/redistest says that a process stood still.
var stood = regexp.MustCompile(`latchkey: stood still for (\d+) ms`)

// cost is how internal/test/redistest says what a package has spent.
var cost = regexp.MustCompile(`latchkey: spent (\d+) ms of processor`)

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
		test := id{e.Package, e.Test}
		switch e.Action {
		case "run", "cont": // one that is parallel begins when it goes on
			t.begun[test] = e.Time
			continue
		case "output":
			if grave.MatchString(e.Output) {
				t.grave[e.Package] = strings.TrimSpace(e.Output)
			}
			if length, err := said(stood, e.Output); err != nil {
				return err
			} else if length > 0 {
				t.stalls[e.Package] = append(t.stalls[e.Package], stall{e.Time, length})
			}
			if spent, err := said(cost, e.Output); err != nil {
				return err
			} else if spent > 0 {
				t.spent[e.Package] += spent
			}
			if e.Test != "" && reason.MatchString(e.Output) {
				t.said[test] = reason.FindStringSubmatch(e.Output)[1]
			}
			continue
		case "start": // of a package
			t.begun[test] = e.Time
			continue
		case "pass", "fail", "skip":
		default:
			continue
		}
		switch said := t.said[test]; {
		case e.Test == "":
			t.took[e.Package] += time.Duration(e.Elapsed * float64(time.Second))
			if e.Action == "fail" {
				t.red[e.Package] = true
			}
		case e.Action == "skip":
			need, ok := strings.CutPrefix(said, "needs ")
			if !ok {
				need = "what it says: " + said
			}
			t.skipped[need]++
		case e.Action == "fail":
			t.ran++
			t.failed++
			if !strings.Contains(e.Test, "/") {
				t.failures = append(t.failures, failure{test, t.begun[test], e.Time})
			}
		default:
			t.ran++
		}
		delete(t.said, test)
		delete(t.begun, test)
	}
}

// said is the time in a line that matches; 0: it does not.
func said(line *regexp.Regexp, output string) (time.Duration, error) {
	found := line.FindStringSubmatch(output)
	if found == nil {
		return 0, nil
	}
	return time.ParseDuration(found[1] + "ms")
}

// stalled is for how long the process of a test stood still while it ran.
func (t *tally) stalled(f failure) (sum time.Duration) {
	for _, s := range t.stalls[f.Package] {
		if s.until.After(f.began) && s.until.Add(-time.Second-s.length).Before(f.ended) {
			sum += s.length
		}
	}
	return sum
}

// judge reports whether all that failed is the machine's fault.
func (t *tally) judge(again func(p, test string) ([]byte, error), out io.Writer) (green bool) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) } // the last line says whether it can be written
	green = true
	explained := map[string]bool{}
	for _, f := range t.failures {
		explained[f.Package] = true
		if text := t.grave[f.Package]; text != "" {
			say("red: %s %s: the package said %q", f.Package, f.Test, text)
			green = false
			continue
		}
		still := t.stalled(f)
		if still == 0 {
			say("red: %s %s: its process did not stand still", f.Package, f.Test)
			green = false
			continue
		}
		text, err := again(f.Package, f.Test)
		if err != nil {
			say("red: %s %s: its process stood still for %v, and alone it failed as well:\n%s", f.Package, f.Test, still, text)
			green = false
			continue
		}
		say("stalled: %s %s failed while its process stood still for %v in all. Alone it passed", f.Package, f.Test, still)
	}
	for p := range t.red {
		if !explained[p] {
			say("red: %s: a package that fails without a test", p)
			green = false
		}
	}
	for test := range t.begun {
		say("red: %s %s has not ended", test.Package, test.Test)
		green = false
	}
	return green
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
	if len(t.took) > 2 { // else it is said above
		text.WriteString("\nthe longest: " + most(t.took) + "; most of the processor: " + most(t.spent))
	}
	if command := install(system, needs); command != "" {
		text.WriteString("\nto run them as well: " + command)
	}
	return text.String()
}

// most are the five packages that have most.
func most(of map[string]time.Duration) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Compare(of[b], of[a]) })
	var list []string
	for _, name := range names[:min(len(names), 5)] {
		list = append(list, fmt.Sprintf("%s %.0f s", strings.TrimPrefix(name, "github.com/latchkey-go/latchkey/"), of[name].Seconds()))
	}
	return strings.Join(list, ", ")
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
