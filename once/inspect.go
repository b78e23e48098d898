package once

import (
	"context"
	"encoding/json"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// State is what [Once.Inspect] returns. It may be out of date when it arrives.
type State struct {
	Done    bool              // see [Once.Result]
	GivenUp bool              // its runs have failed as often as [WithAttempts] allows
	Holder  latchkey.Holder   // who runs it; the zero value: none does
	Waiting int               // how many wait in the queue
	Waiters []latchkey.Waiter // the first 1000, the next one first
}

// Inspect returns whether it is done, who runs it, and who waits, or ErrUnavailable.
func (o *Once) Inspect(ctx context.Context) (s State, err error) {
	held, err := o.runner.lock.Inspect(ctx)
	if err != nil {
		return State{}, err
	}
	b, err := o.read(ctx, whetherDone)
	return State{b.Outcome != nil, b.Exhausted > 0, held.Holder, held.Waiting, held.Waiters}, err
}

// JobState is what [InspectJob] returns. The zero value says that Redis knows of no job.
type JobState struct {
	Next   time.Time      // when the next tick is due, by the server's clock; zero: it is not known
	Paused latchkey.Pause // the zero value: it is not paused
	Runs   []JobRun       // the last one first: one that goes on, and ten that have ended
}

// JobRun is one run of a tick.
type JobRun struct {
	Tick    time.Time         // as [Run.Tick]
	Attempt int               // as [Run.Attempt]
	Began   time.Time         // by the server's clock
	Took    time.Duration     // until its end was recorded; 0: it goes on, or has died
	By      latchkey.Identity // who ran it, as far as its client tells; Since and Note are empty
	End     RunEnd
	Err     string // what the error of its function said: at most 200 bytes; empty unless it has failed
}

// RunEnd says how a run has ended.
type RunEnd int

// The ways.
const (
	GoesOn RunEnd = iota // it has not, as far as Redis knows
	Done                 // its function returned nil
	Failed               // its function returned an error
	GaveUp               // it returned an error, because its context had ended: the tick is run again
	Died                 // its process did, or it lost the lock: the tick is run again, unless it is given up
)

// String returns the end in words.
func (e RunEnd) String() string {
	if e < GoesOn || e > Died {
		return "unknown"
	}
	return [...]string{"goes on", "done", "failed", "gave up", "died"}[e]
}

// InspectJob returns where the job of a name has come to. It returns ErrUnavailable if Redis does not answer.
func InspectJob(ctx context.Context, c *latchkey.Client, name string) (s JobState, err error) {
	g, err := groupOf(c, lua.RunTicks, name)
	if err != nil {
		return s, err
	}
	if err := g.enter(ctx); err != nil {
		return s, fail.Wrap(name, err)
	}
	sent := time.Now()
	next, runs, err := g.Client.Conn.InspectJob(session.WithoutDeadline(ctx), g.Keys)
	if err != nil {
		return s, g.ReadError(ctx, sent, name, err)
	}
	if s.Paused, err = c.Paused(ctx, name); err != nil {
		return JobState{}, err
	}
	if next > 0 {
		s.Next = time.UnixMilli(next)
	}
	if most := longestHistory; len(runs) > most && runs[0].End != lua.RunGoesOn {
		runs = runs[:most]
	}
	for _, r := range runs {
		s.Runs = append(s.Runs, jobRun(r))
	}
	return s, nil
}

// jobRun returns what Redis says of a run. It leaves out a text that it cannot read: another version wrote that text.
func jobRun(r lua.TickRun) JobRun {
	var who identity.Signed
	_ = json.Unmarshal([]byte(r.Who), &who) // see above
	run := JobRun{
		Tick: time.UnixMilli(r.Tick).UTC(), Attempt: int(r.Attempt), Began: time.UnixMilli(r.Began),
		Took: milliseconds(r.Took), By: latchkey.Identity(who.Party()),
		End: map[lua.RunEnd]RunEnd{lua.RunDone: Done, lua.RunFailed: Failed, lua.RunGaveUp: GaveUp, lua.RunDied: Died}[r.End], // else it goes on
	}
	_ = json.Unmarshal([]byte(r.Text), &run.Err)
	run.Err = identity.Clip(run.Err, longestTold)
	return run
}

// longestHistory is how many ended runs InspectJob returns.
const longestHistory = 10

// longestTold is how many bytes of an error's text the record of a run has.
const longestTold = 200
