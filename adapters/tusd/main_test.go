package latchkeytusd_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// TestMain also looks for goroutines that are left behind, by goleak.
func TestMain(m *testing.M) { redistest.Main(m) }
