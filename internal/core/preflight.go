package core

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// preflight asks a server that was just connected to whether the user may do what every script needs. So it
// is Open that tells a user who may not, and no acquire asks. Any other error is left to the commands: the
// server may be busy or loading.
func preflight(client rueidis.Client) error {
	b := client.B()
	asked := []struct {
		name    string
		command rueidis.Completed
	}{
		{"EVALSHA", b.Evalsha().Sha1(strings.Repeat("0", 40)).Numkeys(0).Build()}, // there is no such script
		{"EVAL", b.Eval().Script("return 1").Numkeys(0).Build()},
		{"TIME", b.Arbitrary("TIME").Build()},
	}
	commands := make([]rueidis.Completed, len(asked))
	for i, a := range asked {
		commands[i] = a.command
	}
	// With a context that can end, rueidis would run the connection in the background from then on, which is
	// slower. ConnWriteTimeout ends what is not answered.
	for i, reply := range client.DoMulti(context.Background(), commands...) {
		switch err := reply.Error(); {
		case lua.Forbidden(err):
			return fmt.Errorf("the user may not send %s, see Tenants in docs/operations.md: %w", asked[i].name, err)
		case err != nil && strings.Contains(err.Error(), "unknown command") && isSentinel(client):
			return fail.Invalid("a Sentinel answers, and no master is named: see master_set of a URL, or Sentinel.MasterSet")
		}
	}
	return nil
}

// isSentinel asks a server whether it is one.
func isSentinel(client rueidis.Client) bool {
	info, err := client.Do(context.Background(), client.B().Arbitrary("INFO", "server").Build()).ToString()
	return err == nil && strings.Contains(info, "redis_mode:sentinel")
}
