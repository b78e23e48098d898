package lua

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/rueidis"
)

// The scripts of package once that are not about ticks. Both families have the same.
var (
	onceLook    = ofRuns("once/look.lua")
	onceEnter   = ofRuns("once/enter.lua")
	onceAcquire = ofRuns("once/acquire.lua")
	onceBegin   = ofRuns("once/begin.lua")
	onceFinish  = ofRuns("once/finish.lua")
	onceBack    = ofRuns("once/back.lua")
)

func ofRuns(path string) [families]*Script {
	return [families]*Script{RunOnce: script(RunOnce, path), RunShared: script(RunShared, path)}
}

// Outcome is how a run ended.
type Outcome struct {
	Number int64  // greater than that of every outcome before; 0 when it is not told
	Failed bool   // Value is the text of an error
	Value  string // empty when it was not asked for
}

// kind is what the scripts call it.
func (o Outcome) kind() string {
	if o.Failed {
		return "e"
	}
	return "v"
}

// Begun is the reply of [Conn.Look] and [Conn.Begin]: one of its fields says what holds. None of Look says
// that there is no outcome yet.
type Begun struct {
	Outcome   *Outcome // there is one
	Attempt   int64    // the run has begun, and this is its number
	Now       int64    // if it has begun: the server's clock in microseconds
	Exhausted int64    // there have been so many runs that none begins any more
	Wait      int64    // ms until the next run may begin
	Stale     bool     // a run with a greater token has begun, or the one with this token is over
	Last      int64    // if stale: the token of the run that has begun last
}

// Wanted is which outcome is asked for, and how many runs there may be.
type Wanted struct {
	Since   int64 // number of an outcome that is too old; 0: none is
	Edition int64 // 0: there are none
	Limit   int64 // 0: any number
}

// Look runs once/look.lua. whole: with the outcome's value.
func (c Conn) Look(ctx context.Context, k *Keys, w Wanted, whole bool) (Begun, error) {
	wanted := "0"
	if whole {
		wanted = "1"
	}
	b, err := begun(c.Run(ctx, onceLook[k.family], k, []string{number(w.Limit), wanted, number(w.Since), number(w.Edition)}))
	if b.Outcome == nil && b.Exhausted == 0 && (b.Attempt != 0 || b.Wait != 0 || b.Stale) {
		return Begun{}, errors.Join(ErrReply, err)
	}
	return b, err
}

// Enter runs once/enter.lua, which keeps the record for so many ms. Only outcomes with a greater number than it returns
// are for the one that entered.
func (c Conn) Enter(ctx context.Context, k *Keys, kept int64) (int64, error) {
	text, err := c.Run(ctx, onceEnter[k.family], k, []string{number(kept)}).ToString()
	if err != nil {
		return 0, err
	}
	return parsed(text)
}

// Begin runs once/begin.lua for the holder of the lock. The record is kept for so many ms. again says that it was sent before:
// else a run that has the token is not the caller's, whose lock has given the token twice.
func (c Conn) Begin(ctx context.Context, k *Keys, token int64, w Wanted, kept int64, again bool) (Begun, error) {
	return begun(c.Run(ctx, onceBegin[k.family], k, []string{number(token), number(w.Since), number(w.Limit), number(kept), flag(again), number(w.Edition)}))
}

// AllByNow is for [Wanted].Since of an acquire: all outcomes by then are too old.
const AllByNow = -1

// Beginning is what an acquire does beside taking the lock: it begins a run.
type Beginning struct {
	Wanted

	Kept  int64 // ms that the record is kept while the run lasts
	Least int64 // ms that it is kept at least, with [AllByNow]
	Until int64 // the server's clock in microseconds after which no run begins; 0: it may at any time
}

// AcquireOnce runs once/acquire.lua. begun is the zero value if the lock was not had at once, or it is not told whether the
// run may begin. If there is an outcome, or no run may follow, it says that, and settled is true: the lock was left alone.
// Only outcomes with a greater number than since are for the caller.
func (c Conn) AcquireOnce(ctx context.Context, k *Keys, claim Claim, seen int64, mode Mode, b Beginning) (a Acquired, begun Begun, settled bool, since int64, err error) {
	args, reckoned := k.asking(claim, seen, mode)
	old := number(b.Since)
	if b.Since == AllByNow {
		old = ""
	}
	args = append(args, old, number(b.Limit), number(b.Kept), number(b.Least), number(b.Edition), number(b.Until))
	reply, err := c.Run(ctx, onceAcquire[k.family], k, args, claim.Owner).ToArray()
	if err != nil {
		return a, begun, false, 0, err
	}
	if len(reply) != 4 {
		return a, begun, false, 0, odd(reply)
	}
	var errs [4]error
	if a, settled, errs[0] = k.took(claim, mode, reckoned, reply[0]); reply[1].IsArray() {
		begun, errs[1] = begunOf(reply[1].ToArray())
	}
	since, errs[2] = numberOf(&reply[2])
	a.Now, errs[3] = numberOf(&reply[3])
	if errs[2] == nil && settled && begun.Outcome == nil && begun.Exhausted == 0 {
		errs[2] = ErrReply
	}
	if err := errors.Join(errs[:]...); err != nil {
		return Acquired{}, Begun{}, false, 0, errors.Join(ErrReply, err)
	}
	return a, begun, settled, since, nil
}

// took is the reply to an acquire that may have left the lock alone.
func (k *Keys) took(claim Claim, mode Mode, reckoned bool, reply rueidis.RedisMessage) (a Acquired, alone bool, err error) {
	if n, err := reply.AsInt64(); err == nil && n == 0 && reply.IsInt64() {
		return a, true, nil
	}
	a, err = k.asked(claim, mode, reckoned, reply, nil)
	return a, false, err
}

// Ended is how the finish of a run was taken.
type Ended uint8

// The ways.
const (
	EndRecorded  Ended = iota + 1 // it counts, or has counted
	EndStale                      // another run has begun, and this one does not count
	EndForgotten                  // another run has begun, and what this one had is not known any more
)

// Finish runs once/finish.lua for a run that has this outcome, or has failed if that is nil: then no other
// begins for pause ms. The record is kept for so many ms. The number of the outcome is its own if that is not 0, and else
// follows from at: the server's clock in microseconds when the function returned, or less, or 0. It returns that number.
func (c Conn) Finish(ctx context.Context, k *Keys, token int64, o *Outcome, at, pause, kept int64) (int64, Ended, error) {
	args := []string{number(token), "f", number(kept), number(pause)}
	if o != nil {
		args = []string{number(token), "o", number(kept), o.kind(), o.Value, number(at), number(o.Number)}
	}
	reply, err := c.Run(ctx, onceFinish[k.family], k, args).AsStrSlice()
	if err != nil {
		return 0, 0, err
	}
	switch {
	case len(reply) == 2 && reply[0] == "o":
		n, err := parsed(reply[1])
		return n, EndRecorded, err
	case len(reply) != 1:
	case reply[0] == "f":
		return 0, EndRecorded, nil
	case reply[0] == "s":
		return 0, EndStale, nil
	case reply[0] == "u":
		return 0, EndForgotten, nil
	}
	return 0, 0, ErrReply
}

// Back runs once/back.lua: the run with this token was asked for, and its function was not entered. The record is kept for
// so many ms. Of an acquire that was not answered the token is 0, and its owner id is told.
func (c Conn) Back(ctx context.Context, k *Keys, token int64, owner string, kept int64) error {
	return c.Run(ctx, onceBack[k.family], k, []string{number(token), number(kept), owner}).Error()
}

// numberOf reads a text that is one.
func numberOf(m *rueidis.RedisMessage) (int64, error) {
	text, err := m.ToString()
	if err != nil {
		return 0, err
	}
	return parsed(text)
}

// parsed reads a number from 0 to maxToken.
func parsed(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || check(n) != nil {
		return 0, errors.Join(ErrReply, err)
	}
	return n, nil
}

func begun(result rueidis.RedisResult) (Begun, error) { return begunOf(result.ToArray()) }

func begunOf(reply []rueidis.RedisMessage, err error) (b Begun, _ error) {
	if err != nil {
		return b, err
	}
	if len(reply) < 2 {
		return b, odd(reply)
	}
	status, err := reply[0].ToString()
	if err != nil {
		return b, errors.Join(ErrReply, err)
	}
	if status == "o" {
		b.Outcome, err = outcome(reply[1:])
		return b, err
	}
	n, err := count(&reply[1])
	if err != nil {
		return b, errors.Join(ErrReply, err)
	}
	switch {
	case status == "n":
	case status == "s":
		b.Stale, b.Last = true, n
	case n == 0:
		return b, odd(reply)
	case status == "r" && len(reply) == 3:
		b.Attempt = n
		b.Now, err = numberOf(&reply[2])
	case status == "x":
		b.Exhausted = n
	case status == "w":
		b.Wait = bounded(n)
	default:
		return b, ErrReply
	}
	return b, err
}

// outcome reads {kind, value} and, of a begin, its number.
func outcome(reply []rueidis.RedisMessage) (*Outcome, error) {
	var texts [3]string
	for i := range reply {
		text, err := reply[i].ToString()
		if err != nil || i >= len(texts) {
			return nil, errors.Join(ErrReply, err)
		}
		texts[i] = text
	}
	o := &Outcome{Failed: texts[0] == "e", Value: texts[1]}
	if len(reply) < 2 || texts[0] != o.kind() {
		return nil, ErrReply // without what callers have saved
	}
	var err error
	if len(reply) == 3 {
		o.Number, err = parsed(texts[2])
	}
	return o, err
}
