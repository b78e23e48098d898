package multilock_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
