package lua

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/rueidis"
)

// mostBystanding is for how long a command is sent again that was not sent because of another caller, and
// prompt is how soon rueidis ends no command by a timer of its own, which is seconds as a rule. One that is
// shorter only has a command sent twice, and each is safe to repeat.
const mostBystanding, prompt = time.Second, 500 * time.Millisecond

// exec runs a script. rueidis dials when a command comes, with the context of its caller. Those whose commands
// come before that has ended get its error. So when that context ends they are told that it has, though
// theirs has not, and nothing of theirs was sent. Then it is sent again.
func (c Conn) exec(ctx context.Context, s *rueidis.Lua, keys, args []string) rueidis.RedisResult {
	began := time.Now()
	for {
		sent := time.Now()
		result := s.Exec(ctx, c.Client, keys, args)
		err := result.Error()
		if err == nil || ctx.Err() != nil || !endedForAnother(err, time.Since(sent)) || time.Since(began) > mostBystanding {
			return result
		}
	}
}

// endedForAnother reports whether a command was not sent because the context of another caller has ended. took
// is after how long the error came.
func endedForAnother(err error, took time.Duration) bool {
	var failed *net.OpError
	switch {
	case errors.As(err, &failed):
		return failed.Op == "dial" && took < mostBystanding && (failed.Timeout() || errors.Is(err, context.Canceled))
	case errors.Is(err, context.Canceled): // rueidis cancels nothing by itself
		return true
	default: // a greeting may have been under way. A timer of rueidis looks the same, and takes longer
		return errors.Is(err, context.DeadlineExceeded) && took < prompt
	}
}
