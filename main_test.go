package latchkey_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.MainWithWorkers(m, func(mode []string) {
		deadlockWorker(mode[1], mode[2], mode[3], mode[4] == "checks")
	})
}
