package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// epoch is how long what is done once has one name, in all processes. The next epoch has another one.
const epoch = 250 * time.Millisecond

// errRun is what a function fails with.
var errRun = errors.New("own")

// ofRuns are errors that a random program runs into.
var ofRuns = []error{once.ErrDone, once.ErrNotDone, once.ErrGivenUp, once.ErrSuperseded, errRun}

// runners is how many goroutines of a worker use what functions run under.
func (w *worker) runners(o plan.Object) int {
	if o.Family == plan.Onces || o.Family == plan.Shared {
		return 3
	}
	return 1
}

// useRuns uses it once; n is the number of the goroutine.
func (w *worker) useRuns(stopping context.Context, rng *rand.Rand, o plan.Object, n int) {
	nap(stopping, time.Duration(rng.IntN(20))*time.Millisecond)
	c := w.any(rng)
	if c == nil || stopping.Err() != nil {
		return
	}
	switch o.Family {
	case plan.Onces:
		w.useOnce(rng, c, o)
	case plan.Shared:
		w.useShare(rng, c, o)
	case plan.Ticks:
		w.takePart(stopping, rng, c, o)
	default:
		w.campaign(stopping, rng, c, o, n)
	}
}

// running writes down a run, and does what is done meanwhile. name is what runs of its own exclude each
// other.
func (w *worker) running(ctx context.Context, rng *rand.Rand, c *client, o plan.Object, run *once.Run, name int64) *witness.Record {
	r := w.witness.Ask(witness.Run, o, witness.Alone, name, c.number)
	r.Extra = int64(run.Attempt())
	r.Granted(run.Hold(), run.Token(), 0)
	me := held{object: o, client: c, token: run.Token(), ctx: ctx}
	w.inside(ctx, rng, stack{me}, func() { r.Seen(run.Hold()) })
	r.Seen(run.Hold())
	r.Leaves()
	return r
}

// useOnce does what is to be done now, or looks what became of it.
func (w *worker) useOnce(rng *rand.Rand, c *client, o plan.Object) {
	name := time.Now().UnixMilli() / epoch.Milliseconds()
	options := []once.Option{
		once.WithAttempts(plan.Attempts), once.WithBackoff(time.Millisecond, 50*time.Millisecond), once.WithLease(w.Lease()),
		[]once.Option{once.WithTTL(time.Minute), once.WithSpacing(time.Minute)}[rng.IntN(2)],
	}[:1+rng.IntN(4)]
	one := latchkey.Must(once.New(c.Client, fmt.Sprint(c.name(o), "-", name), append(options, once.WithEdition(1))...))
	if one.Name() != fmt.Sprint(c.name(o), "-", name) {
		w.violation("name", "%s %d is called %s", c.name(o), name, one.Name())
	}
	mode := []int64{witness.DoOnce, witness.DoOnce, witness.DoOnce, witness.TryOnce, witness.ReadResult, witness.IsDone}[rng.IntN(6)]
	call := w.witness.Ask(witness.Call, o, mode, name, c.number)
	ctx, patient, cancel := w.waiting(context.Background(), rng, call)
	defer cancel()
	if mode == witness.ReadResult {
		b, err := one.Result(ctx)
		w.called(c, call, "Result of "+o.Key, patient, false, tokenOf(b), err)
		return
	}
	if mode == witness.IsDone {
		done, err := one.Done(ctx)
		if err == nil && !done {
			err = once.ErrNotDone
		}
		w.called(c, call, "Done of "+o.Key, patient, false, 0, err)
		return
	}
	way, ran, token := one.Do, false, int64(0)
	if mode == witness.TryOnce {
		way = one.TryDo
	}
	err := way(ctx, func(ctx context.Context, run *once.Run) error {
		ran, token = true, run.Token()
		nap(ctx, time.Duration(rng.IntN(200))*time.Millisecond) // so that it may be in the way of faults
		w.running(ctx, rng, c, o, run, name)
		if rng.IntN(4) == 0 {
			return errRun
		}
		return run.SetResult(strconv.AppendInt(nil, token, 10))
	})
	w.called(c, call, "once "+o.Key, patient, ran, token, err)
}

// useShare wants what a run gives now.
func (w *worker) useShare(rng *rand.Rand, c *client, o plan.Object) {
	call := w.witness.Ask(witness.Call, o, witness.ShareRun, 0, c.number)
	ctx, patient, cancel := w.waiting(context.Background(), rng, call)
	defer cancel()
	ran := false
	f := func(ctx context.Context, run *once.Run) (int64, error) {
		ran = true
		w.running(ctx, rng, c, o, run, 0)
		if rng.IntN(8) == 0 {
			return 0, fmt.Errorf("%w", &once.Failure{Text: strconv.FormatInt(run.Token(), 10)})
		}
		return run.Token(), nil
	}
	share := func() (b []byte, err error) { // in the one way or the other, whose results are the same text
		if rng.IntN(2) == 0 {
			token, err := once.ShareJSON(ctx, c.Client, c.name(o), f)
			return strconv.AppendInt(nil, token, 10), err
		}
		return once.Share(ctx, c.Client, c.name(o), func(ctx context.Context, run *once.Run) ([]byte, error) {
			token, err := f(ctx, run)
			return strconv.AppendInt(nil, token, 10), err
		})
	}
	b, err := share()
	var failure *once.Failure
	if errors.As(err, &failure) {
		if !strings.Contains(failure.Error(), failure.Text) {
			w.violation("share", "%s failed with %q and says %v", o.Key, failure.Text, failure)
		}
		b = []byte(failure.Text)
		if err = nil; ran { // which may be joined with what became of the lock
			b, err = nil, errRun
		}
	}
	w.called(c, call, "share "+o.Key, patient, ran, tokenOf(b), err)
}

// tokenOf is the token that a run gave; 0: none.
func tokenOf(b []byte) int64 {
	token, _ := strconv.ParseInt(string(b), 10, 64)
	return token
}

// called writes down what came of a call.
func (w *worker) called(c *client, call *witness.Record, what string, patient, ran bool, token int64, err error) {
	extra := int64(0)
	if ran {
		extra = 1
	}
	switch {
	case ran && errors.Is(err, latchkey.ErrNotRun):
		w.violation("do", "%s: f ran, and the error is %v", what, err)
	case !ran && err != nil && call.Mode != witness.ReadResult && call.Mode != witness.IsDone && !errors.Is(err, latchkey.ErrNotRun):
		w.violation("do", "%s: f never ran, and the error is %v", what, err)
	case !ran && patient && errors.Is(err, context.DeadlineExceeded):
		w.violation("forgotten", "%s waited for %v: %v", what, w.Patience(), err)
	}
	result := witness.Refused
	if !errors.Is(err, errRun) { // whatever became of the lock beside
		result = w.resultOf(c, what, err, ofRuns...)
	}
	call.Answered(result, token, extra)
}

// eachPeriod is a schedule with the ticks that Every has.
type eachPeriod struct{}

func (eachPeriod) Next(after time.Time) time.Time {
	return after.Truncate(plan.Period).Add(plan.Period)
}

// takePart takes part in a job for a while.
func (w *worker) takePart(stopping context.Context, rng *rand.Rand, c *client, o plan.Object) {
	ctx, cancel := context.WithTimeout(stopping, time.Duration(100+rng.IntN(3000))*time.Millisecond)
	defer cancel()
	told := func(tick time.Time, err error) {
		known := func(e error) bool { return errors.Is(err, e) }
		if !slices.ContainsFunc([]error{errRun, once.ErrGivenUp, once.ErrSuperseded, latchkey.ErrUnknownOutcome}, known) {
			_ = w.resultOf(c, fmt.Sprint("tick ", tick, " of job "+o.Key), err, ofRuns...)
		}
	}
	options := []once.JobOption{once.WithMissed(once.Missed(o.Capacity)), once.WithLease(w.Lease()), once.WithOnError(told)}
	if o.Capacity == int(once.Skip) { // all processes alike
		options = append(options, once.WithJitter(plan.Period/2))
	} else {
		options = append(options, once.WithDeaths(1000)) // all ticks are run, however many processes are killed
	}
	f := func(ctx context.Context, run *once.Run) error {
		r := w.running(ctx, rng, c, o, run, run.Tick().UnixMilli())
		if ctx.Err() != nil {
			r.Over(witness.Refused)
			return errRun // it is given up
		}
		r.Over(witness.Done)
		if rng.IntN(8) == 0 {
			return errRun
		}
		return nil
	}
	var job *once.Job
	if o.Capacity == int(once.RunOnce) {
		var beats once.Schedule = eachPeriod{}
		job = latchkey.Must(once.At(c.Client, c.name(o), once.In(time.FixedZone("", 3600), beats), f, options...))
	} else {
		job = latchkey.Must(once.Every(c.Client, c.name(o), plan.Period, f, options...))
	}
	w.named(c, o, job.Name())
	_ = w.resultOf(c, "job "+o.Key, job.Run(ctx), ofRuns...)
}
