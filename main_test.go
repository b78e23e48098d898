package latchkey_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.MainWithWorkers(m, func(mode []string) { idleWorker(mode[1], mode[2]) })
}
