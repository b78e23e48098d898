package redistest

import "github.com/latchkey-go/latchkey/internal/invariant"

// Whatever is tested with a server is tested with its assertions.
func init() { invariant.Checked = true }
