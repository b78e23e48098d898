package lua

import (
	"context"
	"crypto/sha1" //nolint:gosec // scripts are known by it
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// The errors of fenced writes, which have done nothing then.
var (
	// ErrStale says that a greater token was there.
	ErrStale = errors.New("stale token")
	// ErrForeignFence says that the companion of a key is not ours.
	ErrForeignFence = errors.New("foreign data")
)

var (
	fenceSet = rueidis.NewLuaScript(bare("fence/set.lua"))
	// fenceEval is one line, before the user's first one.
	fenceEval = strings.ReplaceAll(behind("", "fence/eval.lua"), "\n", " ")
)

// FenceSet runs fence/set.lua: it writes a value with a token. number is that of this call, not of a copy,
// and greater than those before of the client.
func (c Conn) FenceSet(ctx context.Context, k *Keys, token int64, number uint64, value string) error {
	args := []string{digits(token), padded(int64(number), ""), value} //nolint:gosec // a count of commands
	return fenced(fenceSet.Exec(ctx, c.Client, k.keys, args).Error())
}

// FenceEval runs a script of the user's with a token, behind fence/eval.lua. The keys are of one slot. It is
// sent by its hash, and with its text when the server says that it does not know that. It runs once at most,
// unless its own error is word for word what servers say then. Of its reply and its errors, none but
// [ErrStale] and [ErrForeignFence] are changed. A reply that is nil is no error.
func (c Conn) FenceEval(
	ctx context.Context, ks []*Keys, token int64, script string, args []string,
) (rueidis.RedisMessage, error) {
	keys := make([]string, 2*len(ks))
	for i, k := range ks {
		keys[i], keys[len(ks)+i] = k.keys[0], k.keys[1]
	}
	text := fenceEval + script
	sum := sha1.Sum([]byte(text)) //nolint:gosec // it is the one that Redis takes
	args = append([]string{digits(token)}, args...)
	short := c.Client.B().Evalsha().Sha1(hex.EncodeToString(sum[:])).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
	reply, err := c.Client.Do(ctx, short).ToMessage()
	if isUnknown(err) {
		whole := c.Client.B().Eval().Script(text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
		reply, err = c.Client.Do(ctx, whole).ToMessage()
	}
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return reply, fenced(err)
}

// isUnknown reports whether a server does not know a script, so that it has not run.
func isUnknown(err error) bool {
	var reply *rueidis.RedisError
	if !errors.As(err, &reply) {
		return false
	}
	switch reply.Error() {
	case "NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT No matching script.": // Redis; Valkey
		return true
	}
	return false
}

// Ran reports whether an error of [Conn.FenceEval] is that of the script. What a server does not run, it
// refuses with an error that begins with a code of its own.
func Ran(err error) bool {
	var reply *rueidis.RedisError
	if !errors.As(err, &reply) || errors.Is(err, ErrUnsent) {
		return false
	}
	text := reply.Error()
	// Redis 6 puts the error of a command inside that of the script. Ours is the first line. A command of the
	// user's in that line is refused for none of these reasons when ours were not.
	if _, inside, found := strings.Cut(text, "@user_script: 1: -"); found {
		text = inside
	}
	code, _, _ := strings.Cut(text, " ")
	return !slices.Contains(notRunYet, code)
}

// notRunYet are the codes of servers that do not run a script now, and may later. Those that a write in a
// script gets are refused to the first one, which is ours.
var notRunYet = []string{
	"READONLY", "LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "BUSY", "MISCONF", "NOREPLICAS", "MOVED", "ASK",
}

// fenced tells the errors of fence/check.lua from all others.
func fenced(err error) error {
	var reply *rueidis.RedisError
	if !errors.As(err, &reply) {
		return err
	}
	text := strings.TrimPrefix(reply.Error(), "ERR ")
	if detail, ok := strings.CutPrefix(text, "LATCHKEY_STALE "); ok {
		return fmt.Errorf("%w: a greater one was there: %s", ErrStale, detail)
	}
	if detail, ok := strings.CutPrefix(text, "LATCHKEY_FOREIGN "); ok {
		return fmt.Errorf("%w: %s", ErrForeignFence, detail)
	}
	return err
}
