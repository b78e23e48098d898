package lua

import (
	"context"
	"errors"
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

// ErrUnsent is the error of a request that was given up before it was sent.
var ErrUnsent = errors.New("not sent")

// nonLocal is what a command in a script is told whose key is not at this node, any more or yet, as a slot is
// moving.
const nonLocal = "non local key"

// Classify tells what an error of a script means. Redis 6 hides the code of a command's error inside the script's, so the
// code is looked for anywhere in the text.
func Classify(err error) Class {
	var reply *rueidis.RedisError
	switch {
	case errors.Is(err, ErrUnsent), errors.Is(err, ErrMoving):
		return Refused
	case errors.As(err, &reply):
		text := reply.Error()
		if strings.Contains(text, "WRONGTYPE") {
			return WrongType
		}
		for _, code := range []string{"READONLY", "LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "BUSY ", "MISCONF", "NOREPLICAS", "MOVED ", "ASK ",
			nonLocal,
			"UNBLOCKED", // WAIT, of a primary that is demoted
		} {
			if strings.Contains(text, code) {
				return Refused
			}
		}
		return Permanent
	case errors.Is(err, ErrReply), errors.Is(err, ErrNotInitialized), errors.Is(err, ErrRange): // it answered
		return Permanent
	default: // also rueidis.ErrClosing: that is what commands get when a Sentinel or cluster client drops a node
		return NoAnswer
	}
}

// Passing reports whether the error is one that passes by itself, so that the command is worth repeating.
func Passing(err error) bool {
	class := Classify(err)
	return class == Refused || class == NoAnswer
}

// Quiet hides from errors.Is that a command ended as with a context, and nothing else of it. It was a timer of
// rueidis, or a context of ours: whoever asks whether a context has ended means their own.
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
