//go:build unix

package redisson

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// skipped counts the tests that were.
var skipped atomic.Int64

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
	code := m.Run()
	_ = os.RemoveAll(dir) // of temporary files
	if n := skipped.Load(); n > 0 {
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

// skip skips a test for want of what it needs, or fails it where LATCHKEY_REQUIRE asks for that.
func skip(t testing.TB, what string) {
	t.Helper()
	if redistest.Required("redisson") {
		require.FailNow(t, "LATCHKEY_REQUIRE has redisson, and there is no "+what+" on the PATH")
	}
	skipped.Add(1)
	t.Skip("needs " + what)
}
