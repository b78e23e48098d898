package countdown

import "time"

// Option configures a latch.
type Option func(*settings)

// WithTTL gives the generations that this latch begins a time to live, from 10 ms to 365 days: one that is
// still shut then has expired, whoever waits for it gets [ErrExpired], and it can be set again. For as long
// again it is known that it expired; and one that is open stays open for so long. Default: a shut latch
// stays, and an open one is remembered for a day.
func WithTTL(d time.Duration) Option { return func(o *settings) { o.ttl = &d } }

// WithCount states with what count, at least 1, the latch is set by whoever finds that it is not: by the
// first [Latch.Await] or CountDown of any process, as by [Latch.TrySetCount]. All processes should state the
// same; that of the first one counts, and its
// [WithTTL]. Neither excludes TrySetCount and Rearm with other counts.
//
// The latch is made again whenever Redis knows nothing of it. After [Latch.Delete], those who waited get
// [ErrDeleted], and the next call makes it with the whole count. When Redis has lost it, those who waited get
// ErrLost, and the next call does the same: what was counted before is lost, and has to be counted again. And
// once an open latch is forgotten, after its time to live or a day, whoever comes that late finds it made
// anew, and shut: give it a time to live that is longer than anybody is late.
func WithCount(n int64) Option { return func(o *settings) { o.count = &n } }

// WithWaitForSet makes [Latch.Await] wait for a latch that is not set to be set, and then to be open, instead
// of returning [ErrNotSet]. A misspelt name then waits until its context ends. It excludes
// [WithOpenWhenUnset] and [WithCount].
func WithWaitForSet() Option { return func(o *settings) { o.waitForSet = true } }

// WithOpenWhenUnset makes [Latch.Await] return at once, without an error, for a latch that is not set, as
// Redisson's does: also when Redis has lost it, or its name is misspelt. To count such a latch down is still
// [ErrNotSet]. It excludes [WithWaitForSet] and [WithCount].
func WithOpenWhenUnset() Option { return func(o *settings) { o.openWhenUnset = true } }

// settings are what the options set. Zero values mean that the option was not given.
type settings struct {
	ttl           *time.Duration
	count         *int64
	waitForSet    bool
	openWhenUnset bool
}
