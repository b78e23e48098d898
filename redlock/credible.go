package redlock

import (
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
)

// The lock tells all servers the greatest token that one server has given, and the servers keep it. So a server whose
// counter was overwritten could make the name unusable everywhere. Therefore the lock does not believe a minority
// whose tokens are far ahead. Clocks may be hours apart, and so may tokens.

// far is by how many microseconds the tokens of a server may be ahead of the tokens of the others.
const far = int64(24 * time.Hour / time.Microsecond)

// errFar is the error of a server whose tokens are not believed: the server counts as one with foreign data.
var errFar = fmt.Errorf("%w: its fencing tokens are more than a day ahead of the other servers'", fail.ErrWrongType)

// credible returns the limit up to which tokens are believed. It leaves out as many of the highest tokens as a
// minority has servers, and adds far to the highest token that is left. So a minority cannot raise the limit by more
// than far above the others. The limit is never greater than the greatest token. If there are no more tokens than a
// minority has servers, the limit is the greatest token; without tokens it is 0. credible sorts tokens.
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

// limit returns the limit up to which the tokens of the parts are believed. The caller holds the mutex.
func (q *quorum) limit() int64 {
	tokens := make([]int64, 0, len(q.parts))
	for _, part := range q.parts {
		if part != nil {
			tokens = append(tokens, part.Token())
		}
	}
	return q.engine.credible(tokens)
}

// count returns how many parts have a token that is believed, and how many have another one.
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
