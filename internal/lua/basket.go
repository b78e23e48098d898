package lua

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/rueidis"
)

var (
	takeBasket    = rueidis.NewLuaScript(bare("basket/take.lua"))
	releaseBasket = rueidis.NewLuaScript(bare("basket/release.lua"))
)

// Part is one lock of a basket: several locks of one slot, which one script takes or releases.
type Part struct {
	Keys  *Keys
	Owner string
	Lease int64 // ms
	Seen  int64 // as for [Conn.Acquire]
}

// BasketLimit is how many locks one script takes or releases at most: other clients wait for it.
const BasketLimit = 100

// ErrBasket is the error of a basket whose slot is moving. One by one its locks can be taken.
var ErrBasket = errors.New("one step cannot take them: their slot is moving")

// TakeBasket runs basket/take.lua. With all it takes every part or none, else those before the first that is
// not free. It returns a reply for each part, and how many were free before one that was not. until: as in
// [Claim].
func (c Conn) TakeBasket(ctx context.Context, parts []Part, all bool, until int64) (replies []Acquired, free int, err error) {
	which := "some"
	if all {
		which = "all"
	}
	deadline := "0"
	if until > 0 {
		deadline = digits(until)
	}
	numbers, err := c.basket(ctx, takeBasket, parts, which, deadline)
	if err != nil {
		return nil, 0, err
	}
	replies = make([]Acquired, len(parts))
	if len(numbers) < 3 || numbers[0] > int64(len(parts)) || numbers[1] > int64(len(parts)) || len(numbers)-3 != int(max(numbers[0], 0)) {
		return nil, 0, odd(numbers)
	}
	if err := check(numbers[1:]...); err != nil {
		return nil, 0, err
	}
	for i := range replies {
		replies[i] = Acquired{Now: numbers[2], Late: numbers[0] == replyLate}
		if i+3 < len(numbers) {
			replies[i].Token = numbers[i+3]
		}
	}
	return replies, int(numbers[1]), nil
}

// ReleaseBasket runs basket/release.lua, and reports for each part whether its owner had it.
func (c Conn) ReleaseBasket(ctx context.Context, parts []Part) ([]bool, error) {
	numbers, err := c.basket(ctx, releaseBasket, parts, "", "")
	if err != nil {
		return nil, err
	}
	if len(numbers) != len(parts) {
		return nil, odd(numbers)
	}
	owned := make([]bool, len(parts))
	for i, n := range numbers {
		owned[i] = n == 1
	}
	return owned, nil
}

func (c Conn) basket(ctx context.Context, s *rueidis.Lua, parts []Part, second, third string) ([]int64, error) {
	if len(parts) == 0 || len(parts) > BasketLimit {
		return nil, errors.New("a basket of no parts, or of too many")
	}
	keys := make([]string, 0, 3*len(parts))
	verb := "PUBLISH"
	if parts[0].Keys.sharded() {
		verb = "SPUBLISH"
	}
	args := append(make([]string, 0, 3+3*len(parts)), verb, second, third)
	for _, p := range parts {
		keys = append(keys, p.Keys.keys...)
		args = append(args, p.Owner, floor(p.Seen), number(p.Lease))
	}
	if c.declares() {
		for _, p := range parts {
			keys = append(keys, pace.of(p.Keys.keys[0], p.Keys.sharded()))
		}
	}
	numbers, err := s.Exec(ctx, c.Client, keys, args).AsIntSlice()
	if _, answered := rueidis.IsRedisErr(err); answered && (isMoving(err) || strings.Contains(err.Error(), "TRYAGAIN")) {
		err = ErrBasket
	}
	return numbers, err
}
