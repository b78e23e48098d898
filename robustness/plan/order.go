package plan

import (
	"fmt"
	"path/filepath"
)

// OrderVariable names the variable that has the [Order] of a worker.
const OrderVariable = "LATCHKEY_ROBUSTNESS_WORKER"

// Order is what a worker is told.
type Order struct {
	Plan
	Worker int
	Serial uint64   // of all workers of the episode: one that was killed has a successor
	Direct []string // addresses of the servers
	Proxy  []string // the same, through a proxy
	Dir    string
}

// LogPath is the file in which a worker tells of violations.
func LogPath(dir string, serial uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%d.log", serial))
}
