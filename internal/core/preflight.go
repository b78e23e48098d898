package core

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// strictly finds out whether a script may use a key that its call has not named. It gets another error where
// the user may not use that key, or where the node of a cluster has not got its slot.
const strictly = `local reply = redis.pcall('EXISTS', 'latchkey_probe')
return type(reply) == 'table' and reply.err and string.find(reply.err, 'undeclared key', 1, true) and 1 or 0`

// preflight asks a server that was just connected to whether the user may do what every script needs. So it
// is Open that tells a user who may not, and no acquire asks. It asks for the version as well: of a server
// that is too old, Open is to say so. Any other error is left to the commands: the server may be busy or
// loading. strict: the server refuses scripts with keys that their calls have not named.
func preflight(client rueidis.Client) (strict bool, err error) {
	b := client.B()
	asked := []struct {
		name    string
		command rueidis.Completed
	}{
		{"EVALSHA", b.Evalsha().Sha1(strings.Repeat("0", 40)).Numkeys(0).Build()}, // there is no such script
		{"EVAL", b.Eval().Script(strictly).Numkeys(0).Build()},
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
			return strict, tooOld(reply)
		case lua.Forbidden(err):
			return false, fmt.Errorf("the user may not send %s, see Tenants in docs/operations.md: %w", asked[i].name, err)
		case err != nil && strings.Contains(err.Error(), "unknown command") && isSentinel(client):
			return false, fail.Invalid("a Sentinel answers, and no master is named: see master_set of a URL, or Sentinel.MasterSet")
		case asked[i].name == "EVAL":
			refuses, _ := reply.AsInt64()
			strict = refuses == 1
		}
	}
	return strict, nil
}

// hello comes last, as it is not needed: who may not send it, or a proxy that does not know it, is not asked.
const hello = "HELLO"

// tooOld returns an error for the reply to HELLO of a server without what the scripts need, as KEEPTTL beside
// GET. A version that is no number is trusted: others than Redis and Valkey count in their own way.
func tooOld(reply rueidis.RedisResult) error {
	told, err := reply.AsMap()
	if err != nil {
		return nil //nolint:nilerr // it does not tell
	}
	of := told["version"]
	version, _ := of.ToString()
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, majorErr := strconv.Atoi(first)
	minor, minorErr := strconv.Atoi(second)
	if majorErr != nil || minorErr != nil || major > 6 || major == 6 && minor >= 2 {
		return nil
	}
	return fail.Invalid("the server says that it is version %s: Redis 6.2 or later is needed, or Valkey", version)
}

// isSentinel asks a server whether it is one.
func isSentinel(client rueidis.Client) bool {
	info, err := client.Do(context.Background(), client.B().Arbitrary("INFO", "server").Build()).ToString()
	return err == nil && strings.Contains(info, "redis_mode:sentinel")
}
