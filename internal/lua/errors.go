package lua

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// Class says what can be done about the error of a command.
type Class int

// The classes of errors.
const (
	Permanent Class = iota // the same command will fail again
	Refused                // the server did not run it, and will later
	NoAnswer               // no answer: it may have run, or may still run
	WrongType              // foreign data under the name
)

// ErrUnsent is the error of a request that its caller gave up before it was sent.
var ErrUnsent = errors.New("not sent")

// nonLocal is in the error of a command in a script when the slot is moving, and the command's key is not at
// this node. rehashing is in that of a command with several keys, of which one is not there: newer
// servers, as Redis 8.2, have other words for it than those before.
const (
	nonLocal  = "non local key"
	rehashing = "rehashing of the slot"
)

// A primary that is demoted replies UNBLOCKED to a WAIT that is under way, and noWait to one that comes after that.
const noWait = "WAIT cannot be used with replica instances"

// Classify tells what can be done about the error of a script. Redis 6 puts the error of a command inside
// that of the script. So the code may stand anywhere in the text.
func Classify(err error) Class {
	var reply *rueidis.RedisError
	switch {
	case errors.Is(err, ErrUnsent), errors.Is(err, ErrMoving):
		return Refused
	case errors.Is(err, ErrStale):
		return Permanent
	case errors.Is(err, ErrForeignFence):
		return WrongType
	case errors.As(err, &reply):
		text := reply.Error()
		if strings.Contains(text, "WRONGTYPE") {
			return WrongType
		}
		for _, code := range []string{
			"READONLY", "LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "BUSY ", "MISCONF", "NOREPLICAS",
			"MOVED ", "ASK ", nonLocal, rehashing, undeclaredCode,
			"UNBLOCKED", noWait,
		} {
			if strings.Contains(text, code) {
				return Refused
			}
		}
		return Permanent
	case errors.Is(err, ErrBasket), errors.Is(err, ErrReply), errors.Is(err, ErrNotSet), errors.Is(err, ErrRange): // it answered
		return Permanent
	default: // also rueidis.ErrClosing, the error of a command when a Sentinel or cluster client drops a node
		return NoAnswer
	}
}

// Elsewhere reports whether a server has answered that what is written must go to another one: it is a replica by now,
// or has become the node of a cluster. Commands on the same connection will be answered so for as long as that lasts.
func Elsewhere(err error) bool {
	var reply *rueidis.RedisError
	if !errors.As(err, &reply) {
		return false
	}
	for _, code := range []string{"READONLY", "MASTERDOWN", "UNBLOCKED", noWait, "MOVED "} {
		if strings.Contains(reply.Error(), code) {
			return true
		}
	}
	return false
}

// Passing reports whether the error passes by itself, so that the command is worth repeating.
func Passing(err error) bool {
	class := Classify(err)
	return class == Refused || class == NoAnswer
}

// Forbidden reports whether an access rule of the server forbids a command, a key or a channel; also one that
// a script has used, of which Redis 7 and later speak without the code. What was not sent was not forbidden.
func Forbidden(err error) bool {
	var reply *rueidis.RedisError
	return errors.As(err, &reply) && !errors.Is(err, ErrUnsent) &&
		slices.ContainsFunc([]string{"NOPERM", "user executing the script can't", "ACL failure in script"},
			func(words string) bool { return strings.Contains(reply.Error(), words) })
}

// Quiet hides from errors.Is that a command ended with a context, and hides nothing else. The context was one
// of ours, or a timer of rueidis; but a caller that asks whether a context has ended means its own.
func Quiet(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return quiet{err}
	}
	return err
}

type quiet struct{ error }

func (q quiet) Is(target error) bool {
	return target != context.Canceled && target != context.DeadlineExceeded && errors.Is(q.error, target)
}

func (q quiet) As(target any) bool { return errors.As(q.error, target) }
