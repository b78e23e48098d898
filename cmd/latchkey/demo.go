package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"golang.org/x/sync/errgroup"
)

// errBroken says that an invariant did not hold.
var errBroken = errors.New("an invariant was broken")

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
	WaitedMS int64 `json:"next_waiter_waited_ms"`
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
	Name string `json:"name"`
	OK   bool   `json:"ok"`
}

// limit is the longest that a run may take. It takes five seconds on a machine that has time.
const limit = time.Minute

// demo runs the demonstration and prints its summary. It returns errBroken when an invariant did not hold.
func demo(ctx context.Context, s settings) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the demonstration took more than %v", limit))
	defer cancel()
	d := &demonstration{settings: s, url: s.redis, prefix: "latchkey-demo:" + rand.Text()[:8] + ":", view: newView(s)}
	defer d.view.close()
	result := summary{Server: "given", Processes: s.processes, Stock: s.stock}
	if d.url == "" {
		server := miniredis.NewMiniRedis()
		server.ClockTTL(true) // leases must end
		if err := server.Start(); err != nil {
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
	if err := d.play(ctx, &result); err != nil {
		return err
	}
	result.Seconds = time.Since(began).Seconds()
	result.judge()
	d.view.close()
	if err := d.print(result); err != nil {
		return err
	}
	for _, c := range result.Checks {
		if !c.OK {
			return errBroken
		}
	}
	return nil
}

func (d *demonstration) play(ctx context.Context, r *summary) (err error) {
	if r.Unlocked, err = d.sell(ctx, unlocked, "without a lock"); err != nil {
		return err
	}
	if r.Locked, err = d.sell(ctx, locked, "with the lock"); err != nil {
		return err
	}
	if r.Killed, err = d.killHolder(ctx); err != nil {
		return err
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

// killHolder kills a process in the middle of a sale.
func (d *demonstration) killHolder(ctx context.Context) (killing, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := killing{LeaseMS: lease.Milliseconds()}
	d.view.scene("the holder is killed in the middle of a sale (SIGKILL)", 0)
	holder, _, err := d.hold(ctx)
	if err != nil {
		return k, err
	}
	next, err := d.queue(ctx)
	if err != nil {
		return k, err
	}
	if err := holder.kill(); err != nil {
		return k, err
	}
	began := time.Now()
	if _, err := next.next(ctx, "inside"); err != nil {
		return k, err
	}
	k.WaitedMS = time.Since(began).Milliseconds()
	if err := next.sold(ctx, func() {}); err != nil {
		return k, err
	}
	d.view.done(fmt.Sprintf("holder killed: the next waiter had the lock after %d ms (lease %d ms)", k.WaitedMS, k.LeaseMS))
	return k, nil
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
		if err != nil || n > 0 {
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
	add := func(name string, ok bool) { s.Checks = append(s.Checks, check{name, ok}) }
	add("without a lock, items were sold that did not exist", s.Unlocked.Oversold > 0)
	add("with the lock, exactly the stock was sold", s.Locked.Sold == s.Stock)
	add("after a kill, the next waiter had the lock within the lease and 100 ms", s.Killed.WaitedMS <= s.Killed.LeaseMS+100)
	if s.Stopped.Possible {
		add("the next waiter's token was greater", s.Stopped.NextToken > s.Stopped.StaleToken)
		add("the resumed holder knew that it had lost the lock", !s.Stopped.SaidHeld)
		add("the store refused its stale token", s.Stopped.Refused)
	}
}
