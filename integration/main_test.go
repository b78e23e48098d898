package integration

import (
	"fmt"
	"io"
	"log"
	"os"
	"testing"

	tclog "github.com/testcontainers/testcontainers-go/log"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestMain(m *testing.M) {
	tclog.SetDefault(log.New(io.Discard, "", 0)) // or a failure is lost among what containers do
	code := m.Run()
	if n := skipped.Load(); n > 0 {
		fmt.Fprintf(os.Stderr, "latchkey: %d INTEGRATION TESTS WERE SKIPPED: start a Docker engine, or install redis-server\n", n)
	}
	if code == 0 {
		if err := goleak.Find(redistest.Lingering...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
