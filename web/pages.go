package latchkeyweb

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/look"
)

//go:embed pages
var texts embed.FS

// view is what a page shows.
type view struct {
	Page    string // its name, and its template's
	Title   string
	Live    string // where its changes come from; empty: it has none
	Actions bool
	Now     time.Time
	Away    string // why what is shown is old; empty: it is not

	Scene   scene
	Summary string
	Lines   sparkline
	Filter  filter
	Rows    []look.Row // those that are shown
	Hidden  int        // further ones

	Name    string
	Why     []string // why it does not move
	Report  look.Explanation
	Story   []happened
	Jobs    []look.Report
	Leaders []look.Report
	Circles []circle
	Doctor  diagnosis
	Request Action // what is asked once more
	Done    string // what has become of it
}

// filter is which names are shown.
type filter struct {
	Text string
	Kind look.Kind
}

// Kinds are what can be chosen.
func (filter) Kinds() []look.Kind {
	return []look.Kind{look.KindLock, look.KindReadWrite, look.KindSemaphore, look.KindLatch, look.KindBarrier, look.KindOnce, look.KindLeader}
}

// most is how many names a page shows.
const most = 200

// apply leaves in rows what the filter wants, the longest wait first.
func (f filter) apply(rows []look.Row) (shown []look.Row, hidden int) {
	text := strings.ToLower(f.Text)
	for _, r := range rows {
		p := r.First()
		all := strings.ToLower(strings.Join([]string{string(r.Name), p.Label.String(), p.Host.String(), p.Owner.String(), r.Note().String()}, "\n"))
		if (f.Kind == "" || r.Kind == f.Kind) && strings.Contains(all, text) {
			shown = append(shown, r)
		}
	}
	slices.SortStableFunc(shown, func(a, b look.Row) int {
		return cmp.Or(cmp.Compare(b.Wait, a.Wait), cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Name, b.Name))
	})
	if len(shown) > most {
		return shown[:most], len(shown) - most
	}
	return shown, 0
}

// titles are those of the pages, by the last part of their paths.
var titles = map[string]string{
	"": "Now", "name": "Name", "jobs": "Jobs and leaders", "deadlocks": "Deadlocks", "doctor": "Doctor", "clients": "Clients",
}

// view puts together what a page shows. Its caller has entered.
func (p *page) view(ctx context.Context, name string, query url.Values) (v view, ok bool) {
	title, ok := titles[name]
	if !ok {
		return v, false
	}
	v = view{Page: cmp.Or(name, "now"), Title: title, Actions: p.acts, Live: "live?" + encode(name, query)}
	v.Scene = p.eye.see()
	v.Now = time.Now()
	v.Away = v.Scene.said(v.Now)
	if v.Scene.Sight != nil {
		v.Summary, v.Lines = v.Scene.Summary(), drawn(v.Scene.past)
	}
	switch v.Page {
	case "now":
		v.Filter = filter{query.Get("q"), look.Kind(query.Get("kind"))}
		if v.Scene.Sight != nil {
			v.Rows, v.Hidden = v.Filter.apply(v.Scene.Rows)
		}
	case "name":
		v.Name = query.Get("n")
		v.Title = identity.Printable(v.Name)
		var err error
		v.Report, err = p.eye.explain(v.Name)
		switch {
		case err == nil, errors.Is(err, latchkey.ErrUnavailable) && v.Report.Name != "": // then the banner says how old it is
			v.Why, _ = v.Report.Lines(v.Now)
			v.Why = v.Why[1:] // the heading has the name
		default:
			v.Why = []string{strings.TrimPrefix(err.Error(), "latchkey: ")}
		}
		v.Story = slices.Clone(v.Scene.story[identity.Name(v.Name)])
		slices.Reverse(v.Story)
	case "jobs":
		if v.Scene.Sight != nil {
			for _, r := range v.Scene.Scheduled {
				if r.Kind == look.KindLeader {
					v.Leaders = append(v.Leaders, r)
				} else {
					v.Jobs = append(v.Jobs, r)
				}
			}
		}
	case "deadlocks":
		found := p.eye.deadlocks()
		if found.err != nil && v.Away == "" {
			v.Away = "It is not known: " + identity.Printable(found.err.Error())
		}
		v.Circles = circlesOf(found.found)
	case "doctor":
		v.Live = ""
		v.Doctor = p.doctor.examine(ctx, p)
	}
	return v, true
}

// encode is the query of a page's changes.
func encode(name string, query url.Values) string {
	q := url.Values{"page": {name}}
	for _, key := range []string{"q", "kind", "n"} {
		if query.Has(key) {
			q.Set(key, query.Get(key))
		}
	}
	return q.Encode()
}

// said says since when Redis does not answer, and what it says.
func (s scene) said(now time.Time) string {
	switch {
	case s.err == nil:
		return ""
	case s.Sight == nil:
		return fmt.Sprintf("Redis cannot be looked at since %s: %s", s.away.Format(time.TimeOnly), identity.Printable(s.err.Error()))
	}
	return fmt.Sprintf("Redis cannot be looked at since %s, for %v. What you see is as of %s. %s",
		s.away.Format(time.TimeOnly), now.Sub(s.away).Round(time.Second), s.At.Format(time.TimeOnly), identity.Printable(s.err.Error()))
}

var pages = func() map[string]*template.Template {
	all := map[string]*template.Template{}
	layout := template.Must(template.New("layout.html").Funcs(words).ParseFS(texts, "pages/layout.html"))
	for _, name := range []string{"now", "name", "jobs", "deadlocks", "doctor", "clients", "act", "done"} {
		all[name] = template.Must(template.Must(layout.Clone()).ParseFS(texts, "pages/"+name+".html"))
	}
	return all
}()

// words are what templates call.
var words = template.FuncMap{
	"text":  func(of any) string { return identity.Printable(fmt.Sprint(of)) },
	"raw":   func(of identity.Name) string { return string(of) },
	"whole": briefly,
	"age":   func(now time.Time, p look.Party) string { return age(now, p.Since) },
	"ago":   func(now, then time.Time) string { return briefly(now.Sub(then)) },
	"until": func(now time.Time, then *time.Time) string { return briefly(then.Sub(now)) },
	"clock": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" },
	"left":  func(p look.Party) float64 { return max(0, *p.Remaining) },
	"took":  func(s float64) string { return briefly(time.Duration(s * float64(time.Second))) },
	"class": func(end string) string { return strings.ReplaceAll(end, " ", "-") },
}

func age(now time.Time, since *time.Time) string {
	if since == nil {
		return ""
	}
	return briefly(now.Sub(*since))
}

// briefly is a duration as a person says it.
func briefly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == 0:
		return ""
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(1, d.Milliseconds()))
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 2*day:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d days", int(d/day))
	}
}

// render is a page, or a part of it.
func render(v view, part string) []byte {
	var b bytes.Buffer
	if err := pages[v.Page].ExecuteTemplate(&b, part, v); err != nil {
		panic(err) // the templates are ours, and tests render all
	}
	return b.Bytes()
}

// show answers with a page.
func (p *page) show(w http.ResponseWriter, r *http.Request, name string) {
	p.eye.enter() //nolint:contextcheck // what it begins is for all who look
	defer p.eye.leave()
	v, ok := p.view(r.Context(), name, r.URL.Query())
	if !ok {
		http.NotFound(w, r)
		return
	}
	p.answer(w, v, http.StatusOK)
}

func (p *page) answer(w http.ResponseWriter, v view, status int) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(render(v, "layout.html")) // who has gone needs no answer
}
