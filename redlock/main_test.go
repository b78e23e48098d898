package redlock_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestMain(m *testing.M) {
	if mode := redistest.Mode(); mode != nil {
		worker(mode)
		return
	}
	redistest.Main(m)
}
