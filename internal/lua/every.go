package lua

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

var (
	everyDue     = script(RunTicks, "every/due.lua")
	everyAcquire = script(RunTicks, "every/acquire.lua")
	everyBegin   = script(RunTicks, "every/begin.lua")
	everyFinish  = script(RunTicks, "every/finish.lua")
	everyBack    = script(RunTicks, "every/back.lua")
	everyInspect = script(RunTicks, "every/inspect.lua")
)

// Missed is what is done about ticks that were missed: see every/begin.lua.
type Missed string

// The ways.
const (
	MissedSkip Missed = "skip"
	MissedOnce Missed = "once"
	MissedAll  Missed = "all"
)

// Ticks are those of a job.
type Ticks struct {
	Period int64  // ms
	Delay  int64  // the longest after a tick, in ms; less than the period
	Seed   uint16 // the delays follow from it; below 65521
	Missed Missed
	Grace  int64 // ms after which a tick that has not begun is missed, with MissedSkip
	Limit  int64 // how many runs of a tick may die; 0: any number
	Listed Lister
	Who    string // runs them, in a text without a tab and a newline
}

// Lister lists the ticks of a job that has no period, in ms since the epoch. It is told the server's clock, and the last tick
// that is over if that is known, or 0. The list begins with the last tick that is due, or with 0 if there is none. For
// MissedAll it begins with the last that is over, or has more than 1001. It ends with the first that is after both.
type Lister func(now, last int64) []int64

// args returns the arguments that every/state.lua reads, and more.
func (t Ticks) args(listed []int64, more ...string) []string {
	if t.Listed == nil {
		return append([]string{number(t.Period), number(t.Delay), strconv.Itoa(int(t.Seed))}, more...)
	}
	texts := make([]string, len(listed))
	for i, at := range listed {
		texts[i] = number(at)
	}
	return append([]string{"0", "0", strings.Join(texts, " ")}, more...)
}

// ticksCode begins the error of a script that wants other ticks listed: it has the clock and the last tick that is over.
const ticksCode = "LATCHKEY_TICKS "

// runTicks runs a script of a job. It lists its ticks anew as long as the script wants others: the clock may go on in between.
func runTicks(t Ticks, run func(listed []int64) rueidis.RedisResult) (result rueidis.RedisResult) {
	if t.Listed == nil {
		return run(nil)
	}
	now, last := time.Now().UnixMilli(), int64(0)
	for range 5 {
		result = run(t.Listed(now, last))
		err := result.Error()
		if _, answered := rueidis.IsRedisErr(err); !answered {
			return result
		}
		_, wanted, found := strings.Cut(err.Error(), ticksCode)
		words := strings.Fields(wanted)
		if !found || len(words) < 2 {
			return result
		}
		now, last = integer(words[0]), integer(words[1])
	}
	return result
}

// Due is the reply of [Conn.Due].
type Due struct {
	Take bool  // take the lock
	Dead int64 // ms after which the lock is free, if the process that runs now has died; 0: none runs
	Next int64 // ms until the next tick
}

// Due runs every/due.lua: what is to be done now by this process? lease is that of the lock, in ms.
func (c Conn) Due(ctx context.Context, k *Keys, t Ticks, lease int64, by string) (d Due, err error) {
	reply, err := runTicks(t, func(listed []int64) rueidis.RedisResult {
		return c.Run(ctx, everyDue, k, t.args(listed, number(lease), by))
	}).ToArray()
	if err != nil {
		return d, err
	}
	if len(reply) < 2 {
		return d, odd(reply)
	}
	status, err := reply[0].ToString()
	if err != nil {
		return d, errors.Join(ErrReply, err)
	}
	switch {
	case status == "g":
		d.Take = true
		return d, nil
	case status == "n":
		d.Next, err = ends(&reply[1])
	case status == "b" && len(reply) == 3:
		var other error
		d.Dead, err = ends(&reply[1])
		d.Next, other = ends(&reply[2])
		err = errors.Join(err, other)
	default:
		err = odd(reply)
	}
	return d, err
}

// Tick is the reply of [Conn.Tick].
type Tick struct {
	At      int64 // the tick that is run, in ms since the epoch; 0: none
	Attempt int64 // number of its run
	Next    int64 // if none: ms until the next tick
	Stale   bool  // if none: a run with a greater token has begun, or the one with this token is over
	Last    int64 // if stale: the token of the run that has begun last
	Dropped int64 // the tick that is given up, because so many runs of it have died; 0: none
	Missed  int64 // how many ticks are left out, because too many were missed
}

// Tick runs every/begin.lua: the holder of the lock begins the run of a tick. again is as for [Conn.Begin].
func (c Conn) Tick(ctx context.Context, k *Keys, t Ticks, token int64, again bool) (r Tick, err error) {
	return tick(runTicks(t, func(listed []int64) rueidis.RedisResult {
		return c.Run(ctx, everyBegin, k, t.args(listed, number(token), string(t.Missed), number(t.Grace), number(t.Limit), flag(again), t.Who))
	}).ToArray())
}

// AcquireTick runs every/acquire.lua. told is false if the lock was not had at once, or it is not told whether a run may begin.
// until is as in [Beginning].
func (c Conn) AcquireTick(ctx context.Context, k *Keys, claim Claim, seen int64, mode Mode, t Ticks, until int64) (a Acquired, r Tick, told bool, err error) {
	args, reckoned := k.asking(claim, seen, mode)
	reply, err := runTicks(t, func(listed []int64) rueidis.RedisResult {
		all := append(slices.Clip(args), t.args(listed, string(t.Missed), number(t.Grace), number(t.Limit), number(until), t.Who)...)
		return c.Run(ctx, everyAcquire, k, all, claim.Owner)
	}).ToArray()
	if err != nil {
		return a, r, false, err
	}
	if len(reply) != 2 {
		return a, r, false, odd(reply)
	}
	if told = reply[1].IsArray(); told {
		r, err = tick(reply[1].ToArray())
	}
	if err == nil {
		a, err = k.asked(claim, mode, reckoned, reply[0], nil)
	}
	if err != nil {
		return Acquired{}, Tick{}, false, errors.Join(ErrReply, err)
	}
	return a, r, told, nil
}

func tick(reply []rueidis.RedisMessage, err error) (r Tick, _ error) {
	if err != nil {
		return r, err
	}
	if len(reply) != 5 {
		return r, odd(reply)
	}
	status, err := reply[0].ToString()
	if err != nil {
		return r, errors.Join(ErrReply, err)
	}
	var numbers [4]int64
	for i := range numbers {
		if numbers[i], err = count(&reply[i+1]); err != nil {
			return r, errors.Join(ErrReply, err)
		}
	}
	r.Dropped, r.Missed = numbers[2], numbers[3]
	switch {
	case status == "r" && numbers[0] > 0 && numbers[1] > 0:
		r.At, r.Attempt = numbers[0], numbers[1]
	case status == "n":
		r.Next = bounded(numbers[0])
	case status == "s":
		r.Stale, r.Last = true, numbers[0]
	default:
		return r, ErrReply
	}
	return r, nil
}

// FinishTick runs every/finish.lua: the run is over. text is what the error of its function said, as [Ticks].Who is a text;
// empty: there was none. It returns the ms until the next tick.
func (c Conn) FinishTick(ctx context.Context, k *Keys, t Ticks, token int64, text string) (next int64, end Ended, err error) {
	how := RunDone
	if text != "" {
		how = RunFailed
	}
	reply, err := runTicks(t, func(listed []int64) rueidis.RedisResult {
		return c.Run(ctx, everyFinish, k, t.args(listed, number(token), string(t.Missed), string(how), text))
	}).AsIntSlice()
	if err != nil {
		return 0, 0, err
	}
	ends := []Ended{EndStale, EndRecorded, EndForgotten}
	if len(reply) != 2 || reply[0] < 0 || reply[0] >= int64(len(ends)) || check(reply[1]) != nil {
		return 0, 0, odd(reply)
	}
	return bounded(reply[1]), ends[reply[0]], nil
}

// BackTick runs every/back.lua: the process of this run lives. entered says whether the function was entered. token and owner
// are as for [Conn.Back].
func (c Conn) BackTick(ctx context.Context, k *Keys, t Ticks, token int64, owner string, entered bool) error {
	return runTicks(t, func(listed []int64) rueidis.RedisResult {
		return c.Run(ctx, everyBack, k, t.args(listed, number(token), flag(entered), owner))
	}).Error()
}

// RunEnd says how a run of a tick has ended: see every/runs.lua.
type RunEnd byte

// The ways.
const (
	RunGoesOn RunEnd = 'r'
	RunDone   RunEnd = 'o'
	RunFailed RunEnd = 'f'
	RunGaveUp RunEnd = 'g'
	RunDied   RunEnd = 'd'
)

// TickRun is one run of a tick. Times are ms since the epoch.
type TickRun struct {
	Tick, Attempt, Began int64
	Took                 int64 // ms; 0: it is not known, or less
	End                  RunEnd
	Who, Text            string
}

// InspectJob runs every/inspect.lua. It returns when the next tick is due, in ms since the epoch, and 0 if that is not known;
// and the last runs, the last one first. What no version of this library has written it leaves out.
func (c Conn) InspectJob(ctx context.Context, k *Keys) (next int64, runs []TickRun, err error) {
	reply, err := c.Run(ctx, everyInspect, k, []string{""}).AsStrSlice()
	if err != nil {
		return 0, nil, err
	}
	if len(reply) < 2 {
		return 0, nil, odd(reply)
	}
	if next, err = parsed(reply[0]); err != nil {
		return 0, nil, err
	}
	for _, text := range reply[2:] {
		r, ok := parseRun(text)
		if !ok {
			continue
		}
		if r.End == RunGoesOn && (len(runs) > 0 || reply[1] == "0") {
			r.End = RunDied
		}
		runs = append(runs, r)
	}
	return next, runs, nil
}

// parseRun reads what is told of a run.
func parseRun(text string) (r TickRun, ok bool) {
	fields := strings.Split(text, "\t")
	if len(fields) != 7 || len(fields[4]) != 1 {
		return r, false
	}
	for i, n := range []*int64{&r.Tick, &r.Attempt, &r.Began, &r.Took} {
		var err error
		if *n, err = parsed(fields[i]); err != nil {
			return r, false
		}
	}
	r.End, r.Who, r.Text = RunEnd(fields[4][0]), fields[5], fields[6]
	return r, strings.ContainsRune("rofgd", rune(r.End))
}
