package latchkey_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestMain(m *testing.M) {
	if mode := redistest.Mode(); mode != nil {
		idleWorker(mode[1], mode[2])
		return
	}
	redistest.Main(m)
}
