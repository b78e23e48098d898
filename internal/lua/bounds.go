package lua

import (
	"slices"

	"github.com/redis/rueidis"
)

// What a server says is believed, but no number that no script of ours can say. One that is too great would
// become the floor of its name, and be written to Redis, where every later acquire would find it too great as
// well. A proxy that mixes up connections, or foreign code under the name of a script, is enough for that.

// maxToken is the greatest token that a script hands out: beyond it, Lua's numbers skip integers. No place in
// a queue, no reading of the clock and no generation is greater.
const maxToken = 1<<53 - 2

// farthest is the longest time that is told until a lease ends, in ms: 34 years. Others may have set a longer
// one, which is no error.
const farthest = 1 << 40

// check returns ErrReply unless all numbers are from 0 to maxToken.
func check(numbers ...int64) error {
	for _, n := range numbers {
		if n < 0 || n > maxToken {
			return odd(slices.Clone(numbers)) // the argument stays where it is
		}
	}
	return nil
}

// count reads a number that is from 0 to maxToken.
func count(m *rueidis.RedisMessage) (int64, error) {
	n, err := m.AsInt64()
	if err == nil {
		err = check(n)
	}
	return n, err
}

// ends reads for how many ms a lease goes on; negative: for ever.
func ends(m *rueidis.RedisMessage) (int64, error) {
	n, err := m.AsInt64()
	return bounded(n), err
}

// bounded is a time in ms until a lease ends, which may be added to other times.
func bounded(ms int64) int64 { return max(-1, min(ms, farthest)) }
