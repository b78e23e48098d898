package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// process is a worker that runs.
type process struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	events  chan event
	witness witness // what it says of itself
}

// start runs a worker and waits until it is ready. The context's end kills it.
func (d *demonstration) start(ctx context.Context, m mode) (*process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, "demo-worker", "--prefix", d.prefix, "--mode", string(m)) //nolint:gosec // ourselves
	cmd.Env, cmd.Stderr = append(os.Environ(), envURL+"="+d.url), os.Stderr                         // with its password, which ps would show
	p := &process{cmd: cmd, events: make(chan event, 1024)}
	if p.orders, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.events)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e event
			switch {
			case json.Unmarshal(lines.Bytes(), &e) != nil:
			case e.Event == stalled:
				p.witness.note(stall{time.UnixMilli(e.Until), time.Duration(e.MS) * time.Millisecond})
			default:
				p.events <- e
			}
		}
		_ = cmd.Wait() // a killed one says so
	}()
	_, err = p.next(ctx, "ready")
	return p, err
}

// begin tells the worker to begin, or to go on.
func (p *process) begin() error {
	_, err := p.orders.Write([]byte("\n"))
	return err
}

// next returns the next event, which must be one of the named.
func (p *process) next(ctx context.Context, names ...string) (event, error) {
	select {
	case e, ok := <-p.events:
		if !ok {
			return e, fmt.Errorf("a worker ended instead of reporting %v", names)
		}
		for _, name := range names {
			if e.Event == name {
				return e, nil
			}
		}
		return e, fmt.Errorf("a worker reported %q %s instead of %v", e.Event, e.Error, names)
	case <-ctx.Done():
		return event{}, context.Cause(ctx)
	}
}

// sold counts a worker's sales until it ends.
func (p *process) sold(ctx context.Context, each func()) error {
	for {
		e, err := p.next(ctx, "sold", "end")
		if err != nil || e.Event == "end" {
			return err
		}
		each()
	}
}

// kill ends the worker as kill -9 does, and waits for that.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	for range p.events { // until it has ended
	}
	return nil
}
