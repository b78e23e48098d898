package integration

import (
	"fmt"
	"io"
	"log"
	"os"
	"testing"

	tclog "github.com/testcontainers/testcontainers-go/log"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// proxied is a goroutine of toxiproxy that nothing ends when a connection is closed with data on its way: it
// goes on offering that to whoever wrote it to the connection.
var proxied = goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run")

func TestMain(m *testing.M) {
	tclog.SetDefault(log.New(io.Discard, "", 0)) // or a failure is lost among what containers do
	code := redistest.Run(m)
	if n := skipped.Load(); n > 0 {
		fmt.Fprintf(os.Stderr, "latchkey: %d INTEGRATION TESTS WERE SKIPPED: start a Docker engine, or install redis-server\n", n)
	}
	if n := tooOld.Load(); n > 0 {
		fmt.Fprintf(os.Stderr, "latchkey: %d tests of clusters were skipped: the server is older than Redis 7.0\n", n)
	}
	if code == 0 {
		if err := goleak.Find(append(redistest.Lingering, proxied)...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
