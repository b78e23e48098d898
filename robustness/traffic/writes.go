package traffic

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// exchange writes, and returns what was there.
const exchange = `local was = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1])
return was or '0'`

// write writes with the token of a hold, in one of the two ways. Now and then it is late.
func (w *worker) write(rng *rand.Rand, c *client, o plan.Object, hold *latchkey.Hold) {
	if o.Family != plan.Fenced {
		return
	}
	if rng.IntN(8) == 0 {
		nap(hold.Context(), time.Duration(rng.IntN(20))*time.Millisecond)
	}
	mode := int64(rng.IntN(2))
	r := w.witness.Ask(witness.Write, o, mode, 0, c.number)
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	token := strconv.FormatInt(hold.Token(), 10)
	var err error
	was := int64(0) // what the one before has written, as an Eval sees it
	if mode == 0 {
		err = fence.Set(ctx, hold, o.Key+plan.DataSuffix, token)
	} else {
		var reply fence.Reply
		reply, err = fence.Eval(ctx, hold, exchange, []string{o.Key + plan.DataSuffix}, token)
		if n, other := reply.Int64(); err == nil && !reply.IsNil() && other == nil { // else a fault has replaced the key
			was = n
		}
	}
	result := w.resultOf(c, "write of "+o.Key, err, fence.ErrStale)
	if errors.Is(err, fence.ErrStale) && !errors.Is(err, latchkey.ErrUnknownOutcome) {
		result = witness.Refused
	}
	r.Answered(result, hold.Token(), was)
}
