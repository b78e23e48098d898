package lua

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// ErrMoving is returned for a request that has to wait, because the slot of its name is moving to another
// node. Nothing was done. The error passes, like TRYAGAIN.
var ErrMoving = errors.New("the slot is moving to another node")

// Run runs a script for one name. args must not be empty. ids are the ids whose records the script may look
// at, beside the first argument. Errors are for [Classify].
//
// A call names only the key with the primitive's own name: the script knows how the others follow from it. In
// a cluster there is another reason, which shared/moving.lua gives. While a slot moves and a key is not at the
// node of the name, a script says so before it has written anything. Then Run asks the cluster which keys exist
// on neither side, and runs the careful text of the script with that knowledge. A key exists on neither side
// when it is not at the old node, which can make none, and not at the new one. It may be made at the new one.
func (c Conn) Run(ctx context.Context, s *Script, k *Keys, args []string, ids ...string) rueidis.RedisResult {
	return c.runKnowing(ctx, s, k, nil, args, ids...)
}

// runKnowing is Run when the caller knows which keys exist on neither side; nil: it does not.
func (c Conn) runKnowing(
	ctx context.Context, s *Script, k *Keys, nowhere, args []string, ids ...string,
) rueidis.RedisResult {
	if c.declares() {
		return c.runDeclaring(ctx, s, k, args, ids)
	}
	if nowhere != nil {
		return c.exec(ctx, s.careful(k), k.keys[:1], arguments(args, nowhere))
	}
	result := c.exec(ctx, s.of(k), k.keys[:1], args)
	switch err := result.Error(); {
	case c.isRefused(err) || c.declares(): // the call has found it out
		return c.runDeclaring(ctx, s, k, args, ids)
	case err == nil || !k.sharded() || !isMoving(err):
		return result
	}
	return c.exec(ctx, s.careful(k), k.keys[:1], arguments(args, c.nowhere(ctx, k, append(ids, args[0]))))
}

// tryAgain begins the error of a script that could not do its work, because the slot is moving.
const tryAgain = "TRYAGAIN the slot is moving, and "

// isMoving reports whether a script says that it could not do its work, because the slot is moving.
func isMoving(err error) bool {
	return strings.Contains(err.Error(), "the slot is moving")
}

// arguments are args followed by what shared/moving.lua takes from their end.
func arguments(args, nowhere []string) []string {
	all := append(make([]string, 0, len(args)+len(nowhere)+1), args...)
	return append(append(all, nowhere...), strconv.Itoa(len(nowhere)))
}

// companions are the keys beside the name itself. Those of a read-write lock are also the ones that exist as
// long as these ids read.
func (k *Keys) companions(ids []string) []string {
	keys := k.keys[1:len(k.keys):len(k.keys)]
	for _, id := range ids {
		if k.family == ReadWrite && id != "" {
			keys = append(keys, suffixed(k.keys[0], id+":rwlock_timeout:1"))
		}
	}
	return keys
}

// nowhere returns which companions of a name, and which records of these ids, exist on neither side of a
// move. It asks for each by itself: the old node knows what it has, and sends the client to the new one for
// the rest.
func (c Conn) nowhere(ctx context.Context, k *Keys, ids []string) (absent []string) {
	var keys []string
	for _, s := range shapes[k.family] {
		if s.key > 0 {
			keys = append(keys, k.keys[s.key])
		}
	}
	keys = append(keys, k.companions(ids)[len(k.keys)-1:]...)
	if k.done > 0 {
		for _, id := range append(ids, "stated") {
			keys = append(keys, k.keys[k.done]+":"+id)
		}
	}
	commands := make(rueidis.Commands, len(keys))
	for i, key := range keys {
		commands[i] = c.Client.B().Exists().Key(key).Build()
	}
	for i, reply := range c.Client.DoMulti(ctx, commands...) {
		if n, err := reply.AsInt64(); err == nil && n == 0 {
			absent = append(absent, keys[i])
		}
	}
	return absent
}
