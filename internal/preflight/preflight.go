// Package preflight asks a server that was just connected to what a client must know before its first
// request.
package preflight

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// Ask asks whether the user may do what every script needs, and for the version. So it is Open that tells who
// cannot use a server, and no acquire asks. Any other error is left to the commands: the server may be busy
// or loading. strict: the server refuses scripts with keys that their calls have not declared.
func Ask(client rueidis.Client, prefix string) (strict bool, err error) {
	if err := usable(client); err != nil {
		return false, err
	}
	return isStrict(client, prefix), nil
}

func usable(client rueidis.Client) error {
	b := client.B()
	asked := []struct {
		name    string
		command rueidis.Completed
	}{
		{"EVALSHA", b.Evalsha().Sha1(strings.Repeat("0", 40)).Numkeys(0).Build()}, // there is no such script
		{"EVAL", b.Eval().Script("return 1").Numkeys(0).Build()},
		{"TIME", b.Arbitrary("TIME").Build()},
		{hello, b.Arbitrary(hello).Build()},
	}
	commands := make([]rueidis.Completed, len(asked))
	for i, a := range asked {
		commands[i] = a.command
	}
	// With a context that can end, rueidis would run the connection in the background from then on, which is
	// slower. ConnWriteTimeout ends what is not answered.
	for i, reply := range client.DoMulti(context.Background(), commands...) {
		switch err := reply.Error(); {
		case asked[i].name == hello:
			return tooOld(reply)
		case lua.Forbidden(err):
			return fmt.Errorf("the user may not send %s, see Tenants in docs/operations.md: %w", asked[i].name, err)
		case err != nil && strings.Contains(err.Error(), "unknown command") && isSentinel(client):
			return fail.Invalid("a Sentinel answers, and no master is named: see master_set of a URL, or Sentinel.MasterSet")
		}
	}
	return nil
}

// hello comes last, as it is not needed: who may not send it, or a proxy that does not know it, is not asked.
const hello = "HELLO"

// old are the versions before 6.2.
var old = regexp.MustCompile(`^([0-5]|6\.[01])\.`)

// tooOld returns an error for the reply to HELLO of a server without what the scripts need, as KEEPTTL beside
// GET. A version that is no number is trusted: others than Redis and Valkey count in their own way.
func tooOld(reply rueidis.RedisResult) error {
	told, _ := reply.AsMap() // empty: it does not tell
	of := told["version"]
	version, _ := of.ToString()
	if !old.MatchString(version) {
		return nil
	}
	return fail.Invalid("the server says that it is version %s: Redis 6.2 or later is needed, or Valkey", version)
}

// undeclared uses a key that its call has not declared, of the slot of one that it has, and of the same access rule. It begins as all our
// scripts do, which Dragonfly then lets use any key.
const undeclared = lua.TellsDragonfly + `local reply = redis.pcall('EXISTS', string.sub(KEYS[1], #'latchkey_probe:' + 1) .. ':latchkey_probe_')
return type(reply) == 'table' and reply.err and string.find(reply.err, 'undeclared key', 1, true) and 1 or 0`

// isStrict reports whether a server refuses scripts with keys that their calls have not declared. It does not
// while it does not tell, or the user may not use those two keys.
func isStrict(client rueidis.Client, prefix string) bool {
	command := client.B().Eval().Script(undeclared).Numkeys(1).Key("latchkey_probe:{" + prefix + "=}").Build()
	refuses, err := client.Do(context.Background(), command).AsInt64()
	return err == nil && refuses == 1
}

// isSentinel asks a server whether it is one.
func isSentinel(client rueidis.Client) bool {
	info, err := client.Do(context.Background(), client.B().Arbitrary("INFO", "server").Build()).ToString()
	return err == nil && strings.Contains(info, "redis_mode:sentinel")
}
