package latchkey_test

import (
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.MainWithWorkers(m, func(mode []string) {
		switch mode[0] {
		case "deadlock":
			deadlockWorker(mode[1], mode[2], mode[3], mode[4] == "checks")
		case "detach":
			detachWorker(mode[1], mode[2], strings.Join(mode[3:], ""))
		case "wanted":
			wantedWorker(mode[1], mode[2])
		default:
			idleWorker(mode[1], mode[2])
		}
	})
}
