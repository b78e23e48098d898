package redlock

import (
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
)

// What one server says of its tokens would be told to all others, and would stay there: a server whose
// counter was overwritten could make the name unusable everywhere. So a minority is not believed when it is
// far ahead. Clocks may be hours apart, and so may tokens.

// far is how many microseconds of tokens a server may be ahead of the others.
const far = int64(24 * time.Hour / time.Microsecond)

// errFar is what such a server has: it counts as one with foreign data.
var errFar = fmt.Errorf("%w: its fencing tokens are more than a day ahead of those of the other servers", fail.ErrWrongType)

// credible returns a limit of tokens: each up to it is believed. A minority of servers cannot raise the limit
// by more than far above the others: it leaves out as many of the highest numbers as a minority has
// servers, and adds far to the highest one that is left. The limit is no greater than the greatest number.
// With no more numbers than a minority has servers it is the greatest number; without any it is 0. credible
// sorts the numbers.
func (w *engine) credible(tokens []int64) int64 {
	minority := len(w.servers) - w.majority
	slices.Sort(tokens)
	if len(tokens) == 0 {
		return 0
	}
	greatest := tokens[len(tokens)-1]
	if len(tokens) <= minority {
		return greatest
	}
	return min(greatest, tokens[len(tokens)-1-minority]+far)
}

// limit is the greatest token of the parts that is believed. The mutex is held.
func (q *quorum) limit() int64 {
	tokens := make([]int64, 0, len(q.parts))
	for _, part := range q.parts {
		if part != nil {
			tokens = append(tokens, part.Token())
		}
	}
	return q.engine.credible(tokens)
}

// count returns how many parts there are whose tokens are believed, and how many others.
func (q *quorum) count() (believed, others int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := q.limit()
	for _, part := range q.parts {
		switch {
		case part == nil:
		case part.Token() <= limit:
			believed++
		default:
			others++
		}
	}
	return believed, others
}

// withoutOthers takes out the parts whose tokens are not believed, and returns them.
func (q *quorum) withoutOthers() (others []*grant.Part) {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := q.limit()
	for i, part := range q.parts {
		if part != nil && part.Token() > limit {
			others, q.parts[i] = append(others, part), nil
		}
	}
	return others
}
