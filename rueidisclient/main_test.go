package rueidisclient_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
