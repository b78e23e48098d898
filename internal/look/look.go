// Package look has what the command and a page look at: reports of names, all that is held, what clients tell, why a name does
// not move, and the checks of a server. It reads Redis as a user does, and says what is there in words and as JSON. How that is
// laid out, and with what status a process ends, is for its callers.
package look

import (
	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
)

// Looker looks at names.
type Looker struct {
	Client *latchkey.Client
	Plain  rueidis.Client // for what only Redis itself can say
	Prefix string         // what stands before all names of the application
}

// New returns a Looker with these clients of one Redis, which stay the caller's to close. prefix is that of the client's keys.
func New(client *latchkey.Client, plain rueidis.Client, prefix string) *Looker {
	return &Looker{Client: client, Plain: plain, Prefix: prefix}
}
