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

// credible is the greatest number that is believed, of those that servers say: more servers than a minority
// say as much, or not much less. While not more than a minority has said something, all are believed. It
// sorts the numbers.
func (w *ways) credible(said []int64) int64 {
	minority := len(w.servers) - w.majority
	slices.Sort(said)
	if len(said) == 0 {
		return 0
	}
	greatest := said[len(said)-1]
	if len(said) <= minority {
		return greatest
	}
	return min(greatest, said[len(said)-1-minority]+far)
}

// limit is the greatest token of the parts that is believed. The mutex is held.
func (q *quorum) limit() int64 {
	tokens := make([]int64, 0, len(q.parts))
	for _, part := range q.parts {
		if part != nil {
			tokens = append(tokens, part.Token())
		}
	}
	return q.ways.credible(tokens)
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
