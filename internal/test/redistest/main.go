package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

var skipped atomic.Int64

// Lingering are goroutines of rueidis that nothing ends: a cluster client closes what it no longer needs five
// seconds later, and looks at the cluster again after a while.
var Lingering = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
	goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
	goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
}

// Main runs the tests of a package, then says which server they ran on and how many were skipped for the lack
// of one, and fails when they leave a goroutine behind. While they run, REDIS_URL and REDIS_URLS say where
// the servers of the Examples are.
func Main(m *testing.M) {
	stop := serveExamples()
	code := Run(m)
	stop()
	fmt.Fprintf(os.Stderr, "latchkey: tests ran on %s; %d skipped for the lack of a redis-server, a C compiler or valgrind\n", describe(), skipped.Load())
	if code == 0 {
		if err := goleak.Find(Lingering...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Run runs the tests of a package, and says when its process stands still, and what it has spent in the end. The
// form of these lines is known to tools/tests.
func Run(m *testing.M) int {
	silence := testify(os.Stderr)
	code := m.Run()
	silence()
	fmt.Fprintf(os.Stderr, "latchkey: spent %d ms of processor\n", allCPU().Milliseconds())
	return code
}

// MainWithWorkers is [Main] of a package whose tests start workers ([StartWorker]): in one of these it calls
// worker, which is told the mode.
func MainWithWorkers(m *testing.M, worker func(mode []string)) {
	if mode := Mode(); mode != nil {
		worker(mode)
		return
	}
	Main(m)
}

// exampleServers is how many there are: what an Example of a redlock needs.
const exampleServers = 3

// serveExamples sets REDIS_URL, the address of a server, and REDIS_URLS, those of three with commas between.
// The Examples of a package read them: they are what users paste, and know nothing of tests. The servers are
// embedded ones until stop is called, but for the first, which is that of LATCHKEY_TEST_REDIS where it is
// set. Examples write keys: so what was in REDIS_URL before is never used.
func serveExamples() (stop func()) {
	var urls []string
	if url := os.Getenv("LATCHKEY_TEST_REDIS"); url != "" {
		urls = append(urls, url)
	}
	var stops []func()
	for len(urls) < exampleServers {
		m, err := startEmbedded()
		if err != nil {
			panic(err)
		}
		urls, stops = append(urls, "redis://"+m.Addr()), append(stops, m.Close)
	}
	for name, value := range map[string]string{"REDIS_URL": urls[0], "REDIS_URLS": strings.Join(urls, ",")} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

func describe() string {
	if url := os.Getenv("LATCHKEY_TEST_REDIS"); url != "" {
		return url
	}
	if path := binary(); path != "" {
		version, err := exec.Command(path, "--version").Output()
		if err == nil {
			return fmt.Sprintf("%s (%.60s)", path, version[:len(version)-1])
		}
	}
	return "the embedded server"
}

// Raced reports whether the tests run with the race detector.
func Raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
