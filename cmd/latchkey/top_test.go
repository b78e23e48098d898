//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/look"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
)

// busy is a server on which something is held and waited for, since more than a second.
func busy(t *testing.T) *redistest.Server {
	t.Helper()
	s := redistest.New(t)
	open := func(label string) *latchkey.Client {
		c, err := rueidisclient.New(s.Option(), latchkey.WithLabel(label))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	lock := func(c *latchkey.Client, name string) *latchkey.Lock {
		l, err := fairlock.New(c, name)
		require.NoError(t, err)
		return l
	}
	importer, retrier := open("importer"), open("retrier")
	for _, name := range []string{"orders:42", "alone"} {
		_, err := lock(importer, name).Lock(latchkey.WithNote(t.Context(), "of "+name))
		require.NoError(t, err)
	}
	sem, err := semaphore.New(importer, "build", semaphore.WithCapacity(2))
	require.NoError(t, err)
	_, err = sem.Acquire(t.Context(), 2)
	require.NoError(t, err)
	_ = redistest.Begin(t, func(ctx context.Context) (*latchkey.Hold, error) {
		return lock(retrier, "orders:42").Lock(latchkey.WithNote(ctx, "a retry"))
	})
	wanted, alone := lock(importer, "orders:42"), lock(importer, "alone")
	require.Eventually(t, func() bool { // each client tells it by itself, once it has lasted
		state, err := wanted.Inspect(t.Context())
		other, otherErr := alone.Inspect(t.Context())
		return err == nil && len(state.Waiters) == 1 && state.Waiters[0].Note != "" && state.Holder.Note != "" && otherErr == nil && other.Holder.Note != ""
	}, limit, 10*time.Millisecond)
	return s
}

// Where it is no terminal, top prints a table or a line of JSON at each interval. The longest wait is first.
func TestTopPrints(t *testing.T) {
	t.Parallel()
	s := busy(t)
	status, out := runCommand(t, s.URL(), "top", "--count", "2", "--interval", "100ms")
	require.Zero(t, status, out)
	require.Equal(t, 2, strings.Count(out, "3 held, 1 waiting"), out)
	require.Less(t, strings.Index(out, "orders:42"), strings.Index(out, "alone"))
	require.Contains(t, out, "of orders:42")
	status, out = runCommand(t, s.URL(), "top", "--count", "1", "--json", "o*")
	require.Zero(t, status, out)
	var seen struct {
		Names []look.Row `json:"names"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &seen))
	require.Len(t, seen.Names, 1)
	require.Equal(t, identity.Name("orders:42"), seen.Names[0].Name)
	require.Greater(t, seen.Names[0].LongestWait, 0.9)
	require.Equal(t, look.Told("a retry"), seen.Names[0].Waiters[0].Note)
	for _, args := range [][]string{{"--interval", "1ms"}, {"--count", "0"}, {"a", "b"}} {
		status, out = runCommand(t, s.URL(), append([]string{"top"}, args...)...)
		require.Equal(t, statusUsage, status, out)
	}
	status, out = runCommand(t, "redis://127.0.0.1:1", "top", "--count", "1")
	require.Equal(t, statusAway, status, out)
}

// Hand-offs are counted by name, from the second look on.
func TestTopCountsHandOffs(t *testing.T) {
	t.Parallel()
	s := redistest.New(t)
	r := begin(t, s.URL(), "top", "--json", "--interval", "200ms")
	c, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	defer c.Close()
	ctx, stop := context.WithCancel(t.Context())
	l, err := fairlock.New(c, "counter")
	require.NoError(t, err)
	var both sync.WaitGroup
	for range 2 { // each grants it to the other
		both.Go(func() {
			for ctx.Err() == nil {
				_ = l.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil })
			}
		})
	}
	require.Eventually(t, func() bool {
		for line := range strings.Lines(r.out.String()) {
			var seen struct {
				Names []look.Row `json:"names"`
			}
			if json.Unmarshal([]byte(line), &seen) == nil && len(seen.Names) == 1 && seen.Names[0].HandOffs() > 1 {
				return true
			}
		}
		return false
	}, limit, 10*time.Millisecond)
	stop()
	both.Wait()
	require.NoError(t, r.Process.Signal(os.Interrupt))
	require.Zero(t, r.status(t), r.errors.String())
}

// keys are what is typed, one after the other.
type keys []string

var named = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "backspace": {Code: tea.KeyBackspace}, "down": {Code: tea.KeyDown},
	"ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
}

// types gives a screen these keys. It reports that one of them ends it.
func (k keys) types(s *screen) (quits bool) {
	for _, key := range k {
		message, ok := named[key]
		if !ok {
			message = tea.KeyPressMsg{Code: []rune(key)[0], Text: key}
		}
		_, command := s.Update(message)
		if command != nil {
			if _, ends := command().(tea.QuitMsg); ends {
				return true
			}
		}
	}
	return false
}

// A screen sorts, filters, shows details, pauses and ends by keys.
func TestScreen(t *testing.T) {
	now := time.Now()
	rows := func() (all []look.Row) {
		for i := range 40 {
			since := now.Add(-time.Duration(i) * time.Minute)
			rate := float64(40 - i)
			all = append(all, look.Row{
				Report: look.Report{Name: identity.Name(fmt.Sprintf("name-%02d", i)), Kind: look.KindLock, Waiting: i, Holders: []look.Party{{Owner: "X:1", Host: look.Told(fmt.Sprint("host-", i)), Since: &since, Note: "\x1b[31mred"}}},
				Rate:   &rate, Wait: time.Duration(i) * time.Second, Held: time.Duration(i) * time.Minute,
			})
		}
		return all
	}
	s := newScreen(t.Context(), look.NewMonitor(nil, "*", time.Second))
	require.Contains(t, s.content(), "...")
	s.Update(tea.WindowSizeMsg{Width: 100, Height: 20})
	s.Update(seen{sight: &look.Sight{Complete: true, At: now, Rows: rows(), Counted: true}})
	first := func() string { return string(s.rows()[0].Name) }
	require.Equal(t, "name-39", first(), "the longest wait")
	text := s.content()
	require.Contains(t, text, "40 held, 780 waiting, 820.0 hand-offs a second")
	require.Contains(t, text, "�[31mred", "what a terminal would obey is not shown")
	lines := strings.Split(text, "\n")
	require.LessOrEqual(t, len(lines), 20)
	for _, line := range lines {
		require.LessOrEqual(t, lipgloss.Width(line), 100, line)
	}
	for _, sorted := range []string{"name-39", "name-00", "name-39", "name-00"} { // waiting, rate, held, name
		require.False(t, keys{"s"}.types(s))
		require.Equal(t, sorted, first())
	}
	keys{"S", "S", "S", "S"}.types(s)
	require.Equal(t, "name-39", first())
	keys{"/", "H", "O", "S", "T", "-", "1", "1", "backspace", "2", "enter"}.types(s)
	require.Equal(t, "name-12", first())
	require.Len(t, s.rows(), 1)
	require.Contains(t, s.content(), "filter: HOST-12")
	keys{"enter"}.types(s)
	require.Contains(t, s.content(), "name-12: lock, 12 waiting")
	s.Update(seen{sight: &look.Sight{Complete: true, At: now, Rows: rows()[:3]}})
	require.Contains(t, s.content(), "name-12: free")
	keys{"esc", "esc"}.types(s)
	require.Len(t, s.rows(), 3)
	keys{"down", "enter"}.types(s)
	require.Contains(t, s.content(), "name-01: lock")
	keys{"esc", "p"}.types(s)
	s.Update(seen{sight: &look.Sight{Complete: true, At: now, Rows: rows()}})
	require.Len(t, s.rows(), 3, "it is paused")
	require.Contains(t, s.content(), "paused")
	keys{"?"}.types(s)
	require.Contains(t, s.content(), "enter    show who holds it")
	keys{"?", "p"}.types(s)
	s.Update(seen{err: latchkey.ErrUnavailable})
	require.Contains(t, s.content(), "no answer for 0s")
	s.answered = time.Now().Add(-12 * time.Second)
	require.Contains(t, s.content(), "no answer for 12s")
	s.Update(seen{err: io.ErrUnexpectedEOF})
	require.Contains(t, s.content(), io.ErrUnexpectedEOF.Error())
	require.Len(t, s.rows(), 3, "and what was seen stays")
	keys{"/", "x", "q"}.types(s)
	require.Empty(t, s.rows())
	keys{"esc"}.types(s)
	require.Len(t, s.rows(), 3)
	require.True(t, keys{"q"}.types(s))
	require.True(t, keys{"/", "ctrl+c"}.types(s))
	s.Update(tea.WindowSizeMsg{Width: 1, Height: 1})
	_ = s.View()
}

// The whole program on a terminal: it looks, shows and ends.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	s := busy(t)
	client, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	l := look.New(client, s.Client(t), "")
	defer client.Close()
	var out output
	typed, keyboard := io.Pipe()
	ended := make(chan error, 1)
	p := tea.NewProgram(newScreen(t.Context(), look.NewMonitor(l, "*", 50*time.Millisecond)),
		tea.WithContext(t.Context()), tea.WithInput(typed), tea.WithOutput(&out), tea.WithWindowSize(120, 20), tea.WithoutSignalHandler())
	go func() {
		_, err := p.Run()
		ended <- err
	}()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "orders:42") }, limit, time.Millisecond)
	_, err = keyboard.Write([]byte("s"))
	require.NoError(t, err)
	_, err = keyboard.Write([]byte("q"))
	require.NoError(t, err)
	require.NoError(t, <-ended)
	require.NoError(t, keyboard.Close())
	require.Contains(t, out.String(), "latchkey top")
}

// On a narrow screen names are cut last.
func TestScreenIsNarrow(t *testing.T) {
	s := newScreen(t.Context(), look.NewMonitor(nil, "*", time.Second))
	name := strings.Repeat("name", 8)
	s.Update(tea.WindowSizeMsg{Width: 100, Height: 20})
	s.Update(seen{sight: &look.Sight{Complete: true, At: time.Now(), Rows: []look.Row{{Report: look.Report{
		Name: identity.Name(name), Kind: look.KindLock, Holders: []look.Party{{Owner: look.Told(strings.Repeat("owner", 20)), Note: look.Told(strings.Repeat("note", 20))}},
	}}}}})
	require.Contains(t, s.content(), name)
	s.Update(tea.WindowSizeMsg{Width: 50, Height: 20})
	require.Contains(t, s.content(), name)
	require.NotContains(t, s.content(), "note", "Enter shows it")
	for _, line := range strings.Split(s.content(), "\n") {
		require.LessOrEqual(t, lipgloss.Width(line), 50, line)
	}
}

// A server that is silent holds nothing up for ever.
func TestSilentRedis(t *testing.T) {
	t.Parallel()
	s := redistest.NewProcess(t)
	top := begin(t, s.URL(), "top", "--interval", "100ms", "--json")
	require.Eventually(t, func() bool { return strings.Contains(top.out.String(), "names") }, limit, time.Millisecond)
	list := begin(t, s.URL(), "list") // it may be over before the server stops
	s.Stop(t)
	require.Equal(t, statusAway, top.status(t))
	require.Contains(t, top.errors.String(), "no answer for 2s")
	require.Contains(t, []int{0, statusAway}, list.status(t))
}

// Names that are free are not asked for again and again: a token, or that it was done, is all that there is of them.
func TestTopBesideFreeNames(t *testing.T) {
	t.Parallel()
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	const free = 3000
	for i := range free {
		memory := [...]string{"redisson_lock_token", "latchkey_once"}[i%2]
		require.NoError(t, plain.Do(t.Context(), plain.B().Set().Key(fmt.Sprintf("%s:{free:%d}", memory, i)).Value("1").Ex(time.Hour).Build()).Error())
	}
	c, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	defer c.Close()
	l, err := rlock.New(c, "held")
	require.NoError(t, err)
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, plain.Do(t.Context(), plain.B().ConfigResetstat().Build()).Error())
	top := begin(t, s.URL(), "top", "--no-rates", "--interval", "500ms", "--json")
	require.Eventually(t, func() bool { // a view comes in time, also if a slow machine has not read all names by then
		return strings.Count(top.out.String(), `"complete":true`) >= 3
	}, limit, time.Millisecond)
	require.NoError(t, top.Process.Signal(os.Interrupt))
	require.Zero(t, top.status(t), top.errors.String())
	out := top.out.String()
	require.NotContains(t, out, "free:")
	for view := range strings.Lines(out) {
		if strings.Contains(view, `"complete":true`) {
			require.Contains(t, view, `"held"`)
		}
	}
	info, err := plain.Do(t.Context(), plain.B().Info().Section("commandstats").Build()).ToString()
	require.NoError(t, err)
	calls := 0
	for line := range strings.Lines(info) {
		if _, after, ok := strings.Cut(line, ":calls="); ok {
			var n int
			_, err := fmt.Sscanf(after, "%d,", &n)
			require.NoError(t, err)
			calls += n
		}
	}
	require.Less(t, calls, 2*free)
	require.NoError(t, h.Unlock(t.Context()))
}
