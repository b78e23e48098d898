package rlock_test

import (
	"os"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestMain(m *testing.M) {
	if text := os.Getenv("LATCHKEY_BENCH_WORKER"); text != "" {
		benchWorker(text)
		return
	}
	redistest.Main(m)
}
