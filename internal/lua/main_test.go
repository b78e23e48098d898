package lua_test

import (
	"flag"
	"testing"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if redistest.Brief() {
		_ = flag.Set("rapid.checks", "15") // in place of 100; what is given by hand comes later
	}
	redistest.Main(m)
}
