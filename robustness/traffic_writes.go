package robustness

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fence"
)

// data is how the keys end that are written with tokens.
const data = "-data"

// write writes with the token of a hold, in one of the two ways. Now and then it is late.
func (w *worker) write(rng *rand.Rand, c *client, o Object, hold *latchkey.Hold) {
	if o.Family != Fenced {
		return
	}
	if rng.IntN(8) == 0 {
		nap(hold.Context(), time.Duration(rng.IntN(20))*time.Millisecond)
	}
	mode := int64(rng.IntN(2))
	r := w.witness.Ask(Write, o, mode, 0, c.number)
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	token := strconv.FormatInt(hold.Token(), 10)
	var err error
	if mode == 0 {
		err = fence.Set(ctx, hold, o.Key+data, token)
	} else {
		_, err = fence.Eval(ctx, hold, "return redis.call('SET', KEYS[1], ARGV[1])", []string{o.Key + data}, token)
	}
	result := w.resultOf(c, "write of "+o.Key, err, fence.ErrStale)
	if errors.Is(err, fence.ErrStale) && !errors.Is(err, latchkey.ErrUnknownOutcome) {
		result = Refused
	}
	r.Answered(result, hold.Token(), 0)
}
