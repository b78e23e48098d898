package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/table"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/look"
)

// screen is what top shows on a terminal.
type screen struct {
	ctx     context.Context
	monitor *look.Monitor

	sight     *look.Sight
	err       error     // of the last look
	answered  time.Time // when Redis last answered
	order     order
	filter    string
	filtering bool   // what is typed is the filter
	paused    bool   // it goes on looking, and shows what it had
	keys      bool   // it shows what the keys do
	details   string // the name of which all is shown; empty: none
	table     table.Model
	width     int
	height    int
}

// The messages of a screen.
type (
	seen struct {
		sight *look.Sight
		err   error
	}
	due struct{}
)

func newScreen(ctx context.Context, m *look.Monitor) *screen {
	s := &screen{ctx: ctx, monitor: m, order: byLongestWait, table: table.New(table.WithFocused(true)), width: 100, height: 24, answered: time.Now()}
	styles := table.DefaultStyles()
	styles.Header = styles.Header.Bold(true).Foreground(lipgloss.Color("6"))
	styles.Selected = lipgloss.NewStyle().Reverse(true)
	s.table.SetStyles(styles)
	return s
}

func (s *screen) Init() tea.Cmd { return s.look }

// look is a command: bubbletea runs it aside.
func (s *screen) look() tea.Msg {
	sight, err := s.monitor.Look(s.ctx)
	return seen{sight, err}
}

func (s *screen) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case seen:
		if !unanswered(m.err) {
			s.answered = time.Now()
		}
		if s.err = m.err; m.err == nil && (!s.paused || s.sight == nil) {
			s.sight = m.sight
		}
		s.arrange()
		return s, tea.Tick(s.monitor.Interval(), func(time.Time) tea.Msg { return due{} })
	case due:
		return s, s.look
	case tea.KeyPressMsg:
		if quits := s.press(m); quits {
			return s, tea.Quit
		}
	}
	s.arrange()
	if s.filtering {
		return s, nil
	}
	var command tea.Cmd
	s.table, command = s.table.Update(message)
	return s, command
}

// press obeys a key. It reports that it was the one to end.
func (s *screen) press(key tea.KeyPressMsg) (quits bool) {
	name := key.String()
	if name == "ctrl+c" {
		return true
	}
	if s.filtering {
		s.typed(name, key.Text)
		return false
	}
	switch name {
	case "q":
		return true
	case "s":
		s.order = (s.order + 1) % order(len(columns))
	case "S":
		s.order = (s.order + order(len(columns)) - 1) % order(len(columns))
	case "p":
		s.paused = !s.paused
	case "/":
		s.filtering = true
	case "?":
		s.keys = !s.keys
	case "enter":
		if rows := s.rows(); s.table.Cursor() >= 0 && s.table.Cursor() < len(rows) {
			s.details = string(rows[s.table.Cursor()].Name)
		}
	case "esc":
		if s.details == "" {
			s.filter = ""
		}
		s.details, s.keys = "", false
	}
	return false
}

// typed is a key while a filter is written.
func (s *screen) typed(name, text string) {
	switch name {
	case "enter":
		s.filtering = false
	case "esc":
		s.filtering, s.filter = false, ""
	case "backspace":
		if letters := []rune(s.filter); len(letters) > 0 {
			s.filter = string(letters[:len(letters)-1])
		}
	default:
		s.filter += text
	}
}

// rows are those that are shown.
func (s *screen) rows() (all []look.Row) {
	if s.sight == nil {
		return nil
	}
	for _, r := range s.sight.Rows {
		if strings.Contains(strings.ToLower(strings.Join(cells(r), " ")), strings.ToLower(s.filter)) {
			all = append(all, r)
		}
	}
	s.order.sort(all)
	return all
}

// fitted is a column as wide as it is shown.
type fitted struct {
	column

	is    order
	least int
	width int
}

// dispensable are the columns that a narrow screen leaves out, the first one first. Enter shows what they say.
var dispensable = []string{"pid", "host", "note", "hand-offs/s", "kind", "held", "waiting", "holder"}

// fit makes columns as narrow as the screen: empty ones go, the widest give way, others are left out, and the
// name is cut last.
func (s *screen) fit(rows []look.Row) (shown []fitted) {
	const padding, narrowest = 2, 4
	total := 0
	for i, c := range columns {
		f := fitted{c, order(i), lipgloss.Width(c.title) + 1, 0} // beside it the sign of the order
		says := len(rows) == 0
		f.width = f.least
		for _, r := range rows {
			text := c.text(r)
			f.width = max(f.width, lipgloss.Width(text))
			says = says || text != ""
		}
		if says || order(i) == s.order {
			shown = append(shown, f)
			total += f.width + padding
		}
	}
	for total > s.width {
		widest := -1
		for i, f := range shown {
			if f.title != "name" && f.width > f.least && (widest < 0 || f.width > shown[widest].width) {
				widest = i
			}
		}
		if widest >= 0 {
			shown[widest].width--
			total--
			continue
		}
		gone := slices.IndexFunc(dispensable, func(title string) bool {
			return slices.ContainsFunc(shown, func(f fitted) bool { return f.title == title && f.is != s.order })
		})
		if gone >= 0 {
			at := slices.IndexFunc(shown, func(f fitted) bool { return f.title == dispensable[gone] })
			total -= shown[at].width + padding
			shown = slices.Delete(shown, at, at+1)
			continue
		}
		name := slices.IndexFunc(shown, func(f fitted) bool { return f.title == "name" })
		if shown[name].width <= narrowest {
			break
		}
		shown[name].width--
		total--
	}
	return shown
}

// arrange gives the table what there is.
func (s *screen) arrange() {
	rows := s.rows()
	shown := s.fit(rows)
	titles := make([]table.Column, len(shown))
	for i, f := range shown {
		titles[i] = table.Column{Title: f.title, Width: f.width}
		if f.is == s.order {
			titles[i].Title += "▾"
		}
	}
	lines := make([]table.Row, len(rows))
	for i, r := range rows {
		for _, f := range shown {
			lines[i] = append(lines[i], f.text(r))
		}
	}
	cursor := s.table.Cursor()
	s.table.SetRows(nil) // else rows of other columns would be drawn
	s.table.SetColumns(titles)
	s.table.SetRows(lines)
	s.table.SetWidth(s.width)
	const around = 3 // lines above and below
	s.table.SetHeight(max(2, s.height-around))
	s.table.SetCursor(max(0, min(cursor, len(lines)-1)))
}

const keysOfTop = `  s  S     sort by the next column, or by the last one
  /        show only what contains a text
  ↑ ↓      choose a name
  enter    show who holds it and who waits
  p        pause, and go on
  esc      back; drop the filter
  ?        these keys
  q        end`

func (s *screen) View() tea.View {
	v := tea.NewView(s.content())
	v.AltScreen, v.WindowTitle = true, "latchkey top"
	return v
}

func (s *screen) content() string {
	dim := lipgloss.NewStyle().Faint(true)
	lines := []string{s.status()}
	if s.keys {
		return strings.Join(append(lines, "", keysOfTop), "\n")
	}
	if s.details != "" {
		lines = append(lines, s.detailsOf(s.details), dim.Render("esc back  q end"))
		return strings.Join(lines, "\n")
	}
	help := "? keys  q end"
	if s.filtering {
		help = "filter: " + s.filter + "▏ enter keep  esc drop"
	}
	return strings.Join(append(lines, s.table.View(), dim.Render(help)), "\n")
}

// unanswered reports whether an error is not Redis's own.
func unanswered(err error) bool {
	_, refused := rueidis.IsRedisErr(err)
	return err != nil && !refused
}

// status is the first line.
func (s *screen) status() string {
	text := lipgloss.NewStyle().Bold(true).Render("latchkey top")
	switch {
	case unanswered(s.err):
		warning := fmt.Sprintf(" no answer for %v ", time.Since(s.answered).Truncate(time.Second))
		text += "  " + lipgloss.NewStyle().Bold(true).Reverse(true).Foreground(lipgloss.Color("1")).Render(warning)
	case s.err != nil:
		text += "  " + lipgloss.NewStyle().Foreground(lipgloss.Color("1")).Render(plainText(s.err.Error()))
	case s.sight == nil:
		text += "  ..."
	}
	if s.sight != nil {
		text += fmt.Sprintf("  as of %s  %s", s.sight.At.Format(time.TimeOnly), s.sight.Summary())
	}
	if unanswered(s.err) {
		text += "  " + plainText(s.err.Error())
	}
	if s.paused {
		text += "  paused"
	}
	if s.filter != "" && !s.filtering {
		text += "  filter: " + s.filter
	}
	return lipgloss.NewStyle().MaxWidth(s.width).Render(text)
}

// detailsOf is all that is known of a name.
func (s *screen) detailsOf(name string) string {
	for _, r := range s.sight.Rows {
		if string(r.Name) == name {
			var text strings.Builder
			printReport(&text, r.Report, s.sight.At)
			return strings.TrimRight(text.String(), "\n")
		}
	}
	return plainText(name) + ": free"
}
