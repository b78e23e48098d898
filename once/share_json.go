package once

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
)

// ShareJSON is [Share] for a value that JSON can encode, as a token or a price list:
//
//	token, err := once.ShareJSON(ctx, c, "token:payments", func(ctx context.Context, _ *once.Run) (Token, error) {
//		return fetch(ctx)
//	})
//
// All callers get the value decoded anew, also the one whose f ran. If JSON cannot encode the value, f has failed with
// that error. If the result of another caller is no T, the error matches ErrWrongType of package latchkey.
func ShareJSON[T any](ctx context.Context, c *latchkey.Client, name string, f func(context.Context, *Run) (T, error), opts ...ShareOption) (T, error) {
	var value T
	b, err := Share(ctx, c, name, func(ctx context.Context, run *Run) ([]byte, error) {
		v, err := f(ctx, run)
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	}, opts...)
	if b == nil {
		return value, err
	}
	if wrong := json.Unmarshal(b, &value); wrong != nil {
		var none T
		return none, fail.Wrap(name, fail.Join(err, fmt.Errorf("%w: the shared result is no %T: %w", fail.ErrWrongType, none, wrong)))
	}
	return value, err
}
