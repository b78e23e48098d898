package capacity

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if n := redistest.Skipped(); n > 0 {
		fmt.Fprintf(os.Stderr, "latchkey: %d MEASUREMENTS OF THE CAPACITY WERE SKIPPED: make capacity runs them\n", n)
	}
	if code == 0 {
		if err := goleak.Find(redistest.Lingering...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
