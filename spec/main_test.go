package spec

import (
	"fmt"
	"os"
	"testing"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"go.uber.org/goleak"
)

// folder is where TLC is; empty: it was not fetched.
var folder string

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		_ = os.RemoveAll(folder) // of temporary files
	}
	for _, line := range said {
		fmt.Fprintln(os.Stderr, "latchkey:", line)
	}
	if n := redistest.Skipped(); n > 0 {
		fmt.Fprintf(os.Stderr, "latchkey: %d TESTS OF THE SPEC WERE SKIPPED: make spec runs them, with a JDK 17 and Maven\n", n)
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
