//go:build unix

package redisson

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if words := redistest.Mode(); words != nil {
		serve(words)
		return
	}
	dir, err := os.MkdirTemp("", "latchkey-redisson-")
	if err != nil {
		panic(err)
	}
	folder = dir
	code := redistest.Run(m)
	_ = os.RemoveAll(dir) // of temporary files
	if n := redistest.Skipped(); n > 0 {
		fmt.Fprintf(os.Stderr, "latchkey: %d TESTS WITH REDISSON WERE SKIPPED: install a JDK 17, Maven and redis-server\n", n)
	}
	if code == 0 {
		// toxiproxy goes on offering data of a connection that was closed.
		proxied := goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run")
		if err = goleak.Find(append(redistest.Lingering, proxied)...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
