package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// view shows a run while it goes on.
type view interface {
	scene(title string, total int)
	progress(n int)
	done(result string)
	close()
}

// newView returns a live view for a terminal, and plain lines for anything else.
func newView(s settings) view {
	out := s.out
	if s.json {
		out = os.Stderr
	}
	if f, ok := onTerminal(out); ok {
		return newLive(f)
	}
	text.DisableColors()
	return &plain{out: out}
}

type plain struct{ out io.Writer }

func (p *plain) scene(title string, _ int) { p.line(title + " ...") }
func (p *plain) line(text string)          { _, _ = fmt.Fprintln(p.out, text) } // the summary reports a writer that fails

func (p *plain) progress(int)       {}
func (p *plain) done(result string) { p.line("   " + result) }
func (p *plain) close()             {}

// live is a progress bar for each scene.
type live struct {
	writer  progress.Writer
	tracker *progress.Tracker
	total   int64
	ended   chan struct{}
	closed  bool
}

func newLive(f *os.File) *live {
	w := progress.NewWriter()
	w.SetOutputWriter(f)
	w.SetAutoStop(false)
	w.SetMessageLength(76)
	w.SetTrackerLength(20)
	w.SetTrackerPosition(progress.PositionRight)
	w.SetUpdateFrequency(50 * time.Millisecond)
	w.SetStyle(progress.StyleBlocks)
	w.Style().Colors = progress.StyleColorsExample
	w.Style().Visibility.ETA = false
	w.Style().Visibility.Percentage = false
	w.Style().Visibility.Value = false
	w.Style().Options.TimeInProgressPrecision = 100 * time.Millisecond
	l := &live{writer: w, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		w.Render()
	}()
	return l
}

func (l *live) scene(title string, total int) {
	l.total = int64(total)
	l.tracker = &progress.Tracker{Message: title, Total: int64(total)}
	l.writer.AppendTracker(l.tracker)
}

// progress stays below the total, at which the tracker would call itself done: more can be sold than there
// is.
func (l *live) progress(n int) { l.tracker.SetValue(min(int64(n), l.total-1)) }

func (l *live) done(result string) {
	l.tracker.UpdateMessage(result)
	l.tracker.MarkAsDone()
}

func (l *live) close() {
	if l.closed {
		return
	}
	l.closed = true
	time.Sleep(100 * time.Millisecond) // two frames, so that the last scene is seen to end
	l.writer.Stop()
	<-l.ended
}

// print shows the summary.
func (d *demonstration) print(s summary) error {
	if d.json {
		encoder := json.NewEncoder(d.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(s)
	}
	t := table.NewWriter()
	t.SetOutputMirror(d.out)
	t.SetStyle(table.StyleRounded)
	t.AppendHeader(table.Row{"", "sold", "did not exist"})
	t.AppendRow(table.Row{"without a lock", s.Unlocked.Sold, s.Unlocked.Oversold})
	t.AppendRow(table.Row{"with the lock", s.Locked.Sold, s.Locked.Oversold})
	t.Render()
	t = table.NewWriter()
	t.SetOutputMirror(d.out)
	t.SetStyle(table.StyleRounded)
	t.AppendHeader(table.Row{"the holder was", "its lease", "next waiter had the lock after", "stale token", "next token"})
	t.AppendRow(table.Row{"killed", ms(s.Killed.LeaseMS), ms(s.Killed.WaitedMS), "", ""})
	if s.Stopped.Possible {
		t.AppendRow(table.Row{"stopped", ms(s.Stopped.LeaseMS), ms(s.Stopped.WaitedMS), s.Stopped.StaleToken, s.Stopped.NextToken})
	} else {
		t.AppendRow(table.Row{"stopped", "not possible on this system", "", "", ""})
	}
	t.Render()
	for _, c := range s.Checks {
		mark := text.FgGreen.Sprint("ok    ")
		switch {
		case c.Stalled:
			mark = text.FgYellow.Sprint("?     ")
		case !c.OK:
			mark = text.FgRed.Sprint("BROKEN")
		}
		if _, err := fmt.Fprintln(d.out, mark, c.Name); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(d.out, "%d processes on the %s server, %.1f s\n", s.Processes, s.Server, s.Seconds)
	return err
}

func ms(n int64) string { return fmt.Sprintf("%d ms", n) }
