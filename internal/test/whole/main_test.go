// Package whole_test tests what all primitives do alike, and what several of them do together.
package whole_test

import (
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

const long = 20 * time.Second

func TestMain(m *testing.M) {
	redistest.MainWithWorkers(m, func(mode []string) {
		switch mode[0] {
		case "detach":
			detachWorker(mode[1], mode[2], strings.Join(mode[3:], ""))
		case "wanted":
			wantedWorker(mode[1], mode[2])
		default:
			idleWorker(mode[1], mode[2])
		}
	})
}
