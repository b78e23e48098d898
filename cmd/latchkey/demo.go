package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// errBroken says that an invariant did not hold. errStalled says that this could not be judged.
var (
	errBroken  = errors.New("an invariant was broken")
	errStalled = errors.New("the machine stood still: try again when it has less to do")
)

type settings struct {
	redis            string
	json             bool
	processes, stock int
	out              io.Writer
}

// demonstration is one run.
type demonstration struct {
	settings
	url, prefix string
	shelf       *stock
	view        view
	witness     *witness
}

// summary is what a run showed.
type summary struct {
	Server    string  `json:"server"`
	Processes int     `json:"processes"`
	Stock     int     `json:"stock"`
	Unlocked  selling `json:"without_a_lock"`
	Locked    selling `json:"with_the_lock"`
	Killed    killing `json:"holder_killed"`
	Stopped   freeze  `json:"holder_stopped"`
	Checks    []check `json:"checks"`
	Seconds   float64 `json:"seconds"`
}

type selling struct {
	Sold     int     `json:"sold"`
	Oversold int     `json:"sold_that_did_not_exist"`
	Seconds  float64 `json:"seconds"`
}

type killing struct {
	LeaseMS  int64 `json:"lease_ms"`
	KeptMS   int64 `json:"kept_alive_ms"` // for how long the holder was alive, while another one waited
	Kept     bool  `json:"kept"`          // it had the lock all the while
	WaitedMS int64 `json:"next_waiter_waited_ms"`
	StillMS  int64 `json:"machine_stood_still_ms"`
}

type freeze struct {
	Possible   bool  `json:"possible_on_this_system"`
	LeaseMS    int64 `json:"lease_ms"`
	WaitedMS   int64 `json:"next_waiter_waited_ms"`
	StaleToken int64 `json:"stale_token"`
	NextToken  int64 `json:"next_token"`
	SaidHeld   bool  `json:"said_held_after_it_was_resumed"`
	Refused    bool  `json:"stale_write_refused"`
}

// check is an invariant.
type check struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Stalled bool   `json:"stalled,omitempty"` // it is not ok, and the machine stood still for so long that this says nothing
}

// limit is the longest that a run may take. It takes seven seconds on a machine that has time.
const limit = 2 * time.Minute

// demo runs the demonstration and prints its summary. It returns errBroken when an invariant did not hold, and
// errStalled when one was not shown because the machine stood still.
func demo(ctx context.Context, s settings) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the demonstration took more than %v", limit))
	defer cancel()
	d := &demonstration{settings: s, url: s.redis, prefix: "latchkey-demo:" + rand.Text()[:8] + ":", view: newView(s)}
	defer d.view.close()
	result := summary{Server: "given", Processes: s.processes, Stock: s.stock}
	if d.url == "" {
		server, err := embedded("127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("embedded server: %w", err)
		}
		defer server.Close()
		d.url, result.Server = "redis://"+server.Addr(), "embedded"
	}
	option, err := parse(d.url)
	if err != nil {
		return err
	}
	if d.shelf, err = openStock(option, d.prefix); err != nil {
		return fmt.Errorf("%s: %w", d.url, err)
	}
	defer d.shelf.close()
	defer func() { _ = d.shelf.clear(context.WithoutCancel(ctx)) }() // the rest has a time to live

	began := time.Now()
	d.witness = testify(ctx, nil)
	if err := d.play(ctx, &result); err != nil {
		return err
	}
	result.Seconds = time.Since(began).Seconds()
	result.judge()
	d.view.close()
	if err := d.print(result); err != nil {
		return err
	}
	return result.verdict()
}

func (s *summary) verdict() (err error) {
	for _, c := range s.Checks {
		switch {
		case c.OK:
		case !c.Stalled:
			return errBroken
		default:
			err = errStalled
		}
	}
	return err
}

func (d *demonstration) play(ctx context.Context, r *summary) (err error) {
	for n := 0; n < tries && r.Unlocked.Oversold == 0; n++ { // where processes never meet there is nothing to see
		if r.Unlocked, err = d.sell(ctx, unlocked, "without a lock"); err != nil {
			return err
		}
	}
	if r.Locked, err = d.sell(ctx, locked, "with the lock"); err != nil {
		return err
	}
	for n := range tries {
		if r.Killed, err = d.killHolder(ctx); err != nil {
			return err
		}
		if kept, passed := r.Killed.checks(); !kept.Stalled && !passed.Stalled {
			break
		}
		again := "again"
		if n == tries-1 {
			again = "not judged"
		}
		d.view.done(fmt.Sprintf("%s: the machine stood still for %d ms", again, r.Killed.StillMS))
	}
	if r.Stopped.Possible = canStop; canStop {
		r.Stopped, err = d.stopHolder(ctx)
	}
	return err
}

// sell lets all processes sell until the stock is empty.
func (d *demonstration) sell(ctx context.Context, m mode, title string) (selling, error) {
	if err := d.shelf.fill(ctx, d.stock); err != nil {
		return selling{}, err
	}
	d.view.scene(fmt.Sprintf("%d processes sell %d items %s", d.processes, d.stock, title), d.stock)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := make([]*process, d.processes)
	for i := range workers {
		var err error
		if workers[i], err = d.start(ctx, m); err != nil {
			return selling{}, err
		}
	}
	var sold atomic.Int64
	began := time.Now()
	var g errgroup.Group
	for _, p := range workers {
		if err := p.begin(); err != nil {
			return selling{}, err
		}
		g.Go(func() error {
			return p.sold(ctx, func() { d.view.progress(int(sold.Add(1))) })
		})
	}
	if err := g.Wait(); err != nil {
		return selling{}, err
	}
	s := selling{Sold: int(sold.Load()), Oversold: int(sold.Load()) - d.stock, Seconds: time.Since(began).Seconds()}
	d.view.done(fmt.Sprintf("%s: sold %d, of which %d did not exist", title, s.Sold, s.Oversold))
	return s, nil
}

// tries is how often a step is tried in which the machine stood still, or no two processes met.
const tries = 3

// killHolder has a process hold the lock for longer than its lease, which it renews, and kills it in the
// middle of a sale.
func (d *demonstration) killHolder(ctx context.Context) (killing, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := killing{LeaseMS: lease.Milliseconds(), Kept: true}
	d.view.scene("the holder sells for longer than its lease, and is killed (SIGKILL)", 0)
	holder, _, err := d.hold(ctx)
	if err != nil {
		return k, err
	}
	from := time.Now()
	next, err := d.queue(ctx)
	if err != nil {
		return k, err
	}
	alive, end := context.WithTimeout(ctx, lease+lease/3)
	_, err = next.next(alive, "inside")
	waited := alive.Err() != nil
	end()
	if k.Kept, k.KeptMS = err != nil, time.Since(from).Milliseconds(); k.Kept {
		if ctx.Err() != nil || !waited { // it did not wait
			return k, err
		}
		from = time.Now()
	}
	if err := holder.kill(); err != nil {
		return k, err
	}
	if k.Kept {
		began := time.Now()
		if _, err := next.next(ctx, "inside"); err != nil {
			return k, err
		}
		k.WaitedMS = time.Since(began).Milliseconds()
	}
	if err := next.sold(ctx, func() {}); err != nil {
		return k, err
	}
	k.StillMS = max(d.witness.since(from), holder.witness.since(from), next.witness.since(from)).Milliseconds()
	d.view.done(fmt.Sprintf("holder kept it for %d ms, and was killed: the next waiter had it after %d ms (lease %d ms)", k.KeptMS, k.WaitedMS, k.LeaseMS))
	return k, nil
}

// checks are those of this step. They are not ok by the machine's fault when it stood still for as long as
// something was late: for the time between a renewal and the end of the lease, or for what the next waiter
// waited too long.
func (k killing) checks() (kept, passed check) {
	const longest = 100 // ms after the lease
	kept = check{"a holder that lives keeps the lock past its lease", k.Kept, !k.Kept && k.StillMS >= k.LeaseMS*2/3}
	late := k.WaitedMS - k.LeaseMS - longest
	passed = check{"after a kill, the next waiter had the lock within the lease and 100 ms", k.Kept && late <= 0, late > 0 && k.StillMS >= late || kept.Stalled}
	return kept, passed
}

// stopHolder freezes a process in the middle of a sale until its lease is over, and lets it go on.
func (d *demonstration) stopHolder(ctx context.Context) (freeze, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := freeze{Possible: true, LeaseMS: lease.Milliseconds()}
	d.view.scene("the holder is stopped past its lease (SIGSTOP), and goes on", 0)
	holder, stale, err := d.hold(ctx)
	if err != nil {
		return f, err
	}
	next, err := d.queue(ctx)
	if err != nil {
		return f, err
	}
	if err := holder.stop(); err != nil {
		return f, err
	}
	began := time.Now()
	inside, err := next.next(ctx, "inside")
	if err != nil {
		return f, err
	}
	f.WaitedMS = time.Since(began).Milliseconds()
	f.StaleToken, f.NextToken = stale, inside.Token
	if err := next.sold(ctx, func() {}); err != nil {
		return f, err
	}
	if err := errors.Join(holder.resume(), holder.begin()); err != nil {
		return f, err
	}
	e, err := holder.next(ctx, "refused", "sold")
	if err != nil {
		return f, err
	}
	f.Refused, f.SaidHeld = e.Event == "refused", e.Held
	d.view.done(fmt.Sprintf("holder stopped: next waiter after %d ms; stale write refused: %v", f.WaitedMS, f.Refused))
	return f, nil
}

// hold starts a process that is in the middle of a sale, and returns its token.
func (d *demonstration) hold(ctx context.Context) (*process, int64, error) {
	if err := d.shelf.fill(ctx, d.stock); err != nil {
		return nil, 0, err
	}
	p, err := d.start(ctx, stuck)
	if err != nil {
		return nil, 0, err
	}
	if err := p.begin(); err != nil {
		return nil, 0, err
	}
	e, err := p.next(ctx, "inside")
	return p, e.Token, err
}

// queue starts a process that waits for the lock, and returns when it does.
func (d *demonstration) queue(ctx context.Context) (*process, error) {
	p, err := d.start(ctx, single)
	if err != nil {
		return nil, err
	}
	if err := p.begin(); err != nil {
		return nil, err
	}
	key := "latchkey_queue:{" + d.prefix + "lock}"
	for {
		n, err := d.shelf.client.Do(ctx, d.shelf.client.B().Llen().Key(key).Build()).AsInt64()
		if err != nil || n > 0 || len(p.events) > 0 { // or it has the lock already, or has failed
			return p, err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *summary) judge() {
	add := func(name string, ok bool) { s.Checks = append(s.Checks, check{Name: name, OK: ok}) }
	s.Checks = append(s.Checks, check{"without a lock, items were sold that did not exist", s.Unlocked.Oversold > 0, s.Unlocked.Oversold == 0})
	add("with the lock, exactly the stock was sold", s.Locked.Sold == s.Stock)
	kept, passed := s.Killed.checks()
	s.Checks = append(s.Checks, kept, passed)
	if s.Stopped.Possible {
		add("the next waiter's token was greater", s.Stopped.NextToken > s.Stopped.StaleToken)
		add("the resumed holder knew that it had lost the lock", !s.Stopped.SaidHeld)
		add("the store refused its stale token", s.Stopped.Refused)
	}
}
