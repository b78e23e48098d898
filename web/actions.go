package latchkeyweb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/look"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Kind is what an [Action] does.
type Kind string

// What can be done.
const (
	// Unlock takes a lock away from its holder, as latchkey.Lock.ForceUnlock does. Until the holder learns of it, two may hold it.
	Unlock Kind = "unlock"
	// Pause holds up a job or a leader, as latchkey.Client.Pause does.
	Pause Kind = "pause"
	// Resume ends a pause.
	Resume Kind = "resume"
	// Resign makes a leader resign: it pauses the name for 15 s, or longer if the lease is longer.
	Resign Kind = "resign"
)

// Action is what the sender of a form wants to do.
type Action struct {
	Kind  Kind
	Name  string // without the client's key prefix
	Token int64  // with Unlock: of the hold that was shown. If another hold has the lock by then, nothing is done
	Why   string // at most 200 bytes
}

// Authorize decides whether the sender of a request may do something. It returns who that is, for the log,
// the holder and Inspect; empty: not known. With an error nothing is done, and the sender sees its text. It
// is called for each request: before the page asks for confirmation, and again before the action. Several
// goroutines call it at once.
type Authorize func(r *http.Request, a Action) (who string, err error)

// WithActions lets the page change something: see [Action]. Before each change the page asks for
// confirmation. It tries for ten seconds, and logs the change by the client's logger. It refuses a form of
// another site. [Handler] refuses nil.
func WithActions(authorize Authorize) Option {
	return func(p *page) { p.authorize = authorize; p.acts = true }
}

const (
	// resigns is for how long at least a name is paused so that its leader resigns.
	resigns = 15 * time.Second
	// patience is for how long it tries to do something.
	patience = 10 * time.Second
)

// act asks once more, and then does something.
func (p *page) act(w http.ResponseWriter, r *http.Request) {
	if !p.acts {
		http.Error(w, "nothing can be changed here: the page is mounted without actions", http.StatusForbidden)
		return
	}
	if err := p.forms.Check(r); err != nil {
		http.Error(w, "this form was sent by another site", http.StatusForbidden)
		return
	}
	query := r.URL.Query()
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
		if err := r.ParseForm(); err != nil {
			http.Error(w, "this form cannot be read", http.StatusBadRequest)
			return
		}
		query = r.Form
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "a form is sent with POST", http.StatusMethodNotAllowed)
		return
	}
	a, err := actionOf(query)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	who, err := p.authorize(r, a)
	if err != nil {
		http.Error(w, "you may not do that: "+identity.Printable(err.Error()), http.StatusForbidden)
		return
	}
	p.eye.enter() //nolint:contextcheck // what it begins is for all who look
	defer p.eye.leave()
	v := view{Page: "act", Title: titleOf(a), Actions: true, Now: time.Now(), Name: a.Name, Request: a}
	if r.Method != http.MethodPost {
		if v.Report, err = p.eye.explain(a.Name); err != nil {
			v.Away = identity.Printable(err.Error())
		}
		p.answer(w, v, http.StatusOK)
		return
	}
	status := http.StatusOK
	v.Page = "done"
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience) // what was begun is not broken off by a browser
	defer cancel()
	if v.Done, err = p.do(ctx, a, who); err != nil {
		outcome := "It was not done: "
		if errors.Is(err, latchkey.ErrUnknownOutcome) {
			outcome = "It is not known whether it was done: "
		}
		status, v.Done = http.StatusBadGateway, outcome+identity.Printable(strings.TrimPrefix(err.Error(), "latchkey: "))
	}
	p.eye.changed(a.Name)
	p.logger().LogAttrs(r.Context(), slog.LevelWarn, "latchkey: done by the page",
		slog.String("action", string(a.Kind)), slog.String("name", a.Name), slog.String("who", who), slog.String("why", a.Why),
		slog.String("outcome", v.Done))
	p.answer(w, v, status)
}

func (p *page) logger() *slog.Logger {
	return (*session.Handle)(p.looker.Client).Client().Options.Logger
}

// actionOf is what a form asks for.
func actionOf(query url.Values) (a Action, err error) {
	a = Action{Kind: Kind(query.Get("do")), Name: query.Get("n"), Why: identity.Clip(query.Get("why"), identity.MaxNote)}
	switch {
	case a.Kind != Unlock && a.Kind != Pause && a.Kind != Resume && a.Kind != Resign:
		return a, fmt.Errorf("there is no such action: it is unlock, pause, resume or resign")
	case a.Name == "":
		return a, fmt.Errorf("the name is missing")
	}
	if text := query.Get("token"); text != "" {
		if a.Token, err = strconv.ParseInt(text, 10, 64); err != nil {
			return a, fmt.Errorf("the token is no number")
		}
	}
	return a, nil
}

func titleOf(a Action) string {
	name := identity.Printable(a.Name)
	switch a.Kind {
	case Unlock:
		return "Take " + name + " away"
	case Pause:
		return "Pause " + name
	case Resume:
		return "Resume " + name
	default:
		return "Have the leader of " + name + " resign"
	}
}

// do does it, and says what has become of it.
func (p *page) do(ctx context.Context, a Action, who string) (string, error) {
	client, by := p.looker.Client, identity.Clip(who, identity.MaxNote)
	switch a.Kind {
	case Unlock:
		return p.unlock(ctx, a, who)
	case Pause:
		return "It is paused.", client.Pause(ctx, a.Name, latchkey.Pause{By: by, Why: a.Why})
	case Resign:
		return p.resign(ctx, a, by)
	default:
		return "It goes on within ten seconds.", client.Resume(ctx, a.Name)
	}
}

// unlock takes a lock away from the hold that was shown.
func (p *page) unlock(ctx context.Context, a Action, who string) (string, error) {
	now, err := p.looker.Report(ctx, a.Name)
	switch {
	case err != nil:
		return "", err
	case len(now.Holders) == 0 || now.Kind == look.KindSemaphore:
		return "Nothing was done: it is no lock that is held.", nil
	case now.First().Token != a.Token:
		return "Nothing was done: another one holds it now.", nil
	}
	note := a.Why
	if who != "" {
		note = strings.TrimSuffix("by "+who+": "+a.Why, ": ")
	}
	taken, err := p.looker.TakeAway(latchkey.WithNote(ctx, note), a.Name, now, a.Token)
	switch {
	case err != nil:
		return "", err
	case !taken:
		return "Nothing was done: that holder has given it back.", nil
	}
	return "It was taken away.", nil
}

// resign pauses a name for so long that its leader finds out: it asks within a third of its lease, and more than half of the
// lease is left while it is renewed.
func (p *page) resign(ctx context.Context, a Action, by string) (string, error) {
	now, err := p.looker.Report(ctx, a.Name)
	switch {
	case err != nil:
		return "", err
	case now.Kind != look.KindLeader || len(now.Holders) == 0:
		return "Nothing was done: no process leads.", nil
	case now.Paused != nil: // a shorter pause would replace that one
		return "Nothing was done: the name is paused, so its leader resigns.", nil
	}
	lasts := resigns
	if left := now.First().Remaining; left != nil {
		lasts = max(lasts, time.Duration(*left*float64(time.Second)))
	}
	why := strings.TrimSuffix("the leader is to resign: "+a.Why, ": ")
	return fmt.Sprintf("Its leader resigns. Another one, or the same, leads again in %s.", briefly(lasts)),
		p.looker.Client.Pause(ctx, a.Name, latchkey.Pause{By: by, Why: identity.Clip(why, identity.MaxNote), Until: time.Now().Add(lasts)})
}
