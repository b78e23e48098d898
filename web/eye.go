package latchkeyweb

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/look"
)

const (
	// pause is how long a look is good for.
	pause = time.Second
	// lingers is for how long after the last one who looked it keeps what it knows, and counts hand-offs: a person goes from
	// one page to the next.
	lingers = 10 * time.Second
	// kept is how many looks the page remembers.
	kept = 300
	// slow is how often it asks for what costs more.
	slow = 5 * time.Second
)

// eye is what looks at Redis for all who look at the page. Who asks when a look is older than a second looks; others are given
// what that one sees. So nothing runs for it in the background but the count of hand-offs.
type eye struct {
	looker *look.Looker
	open   context.Context // ends with the client

	looking sync.Mutex // held by who looks

	mu       sync.Mutex
	viewers  int
	visits   int       // how often one has come
	session  *watching // nil: no one looks
	scene    scene
	names    map[string]*followed
	rendered map[string]*rendered

	circling sync.Mutex // held by who looks for deadlocks
	circles  circles
}

// watching is what goes on while a page is open.
type watching struct {
	monitor *look.Monitor
	ctx     context.Context
	stop    func()
}

// scene is what was seen last.
type scene struct {
	*look.Sight

	err   error     // of the last look
	tried time.Time // when that was
	away  time.Time // since when Redis does not answer; zero: it does
	past  []moment  // the oldest one first
	story map[identity.Name][]happened
	who   map[identity.Name]look.Party // who held what, in the last look
}

// moment is what one look has seen of all names.
type moment struct {
	at       time.Time
	handOffs float64
	counted  bool
}

// happened is something that a look has seen to have changed.
type happened struct {
	At   time.Time
	What string
}

// followed is a name whose own page is open.
type followed struct {
	looking sync.Mutex
	last    look.Explanation
	err     error
	at      time.Time
}

// circles are the deadlocks that were found.
type circles struct {
	found [][]look.Link
	err   error
	good  time.Time // until when
}

func newEye(open context.Context, l *look.Looker) *eye {
	return &eye{
		looker: l, open: open, names: map[string]*followed{}, rendered: map[string]*rendered{},
		scene: scene{story: map[identity.Name][]happened{}, who: map[identity.Name]look.Party{}},
	}
}

// enter says that a page is open, until leave.
func (e *eye) enter() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.viewers++
	e.visits++
	if e.session == nil {
		ctx, cancel := context.WithCancel(e.open)
		m := look.NewMonitor(e.looker, "*", pause)
		wait := m.CountGrants(ctx)
		e.session = &watching{monitor: m, ctx: ctx, stop: func() { cancel(); wait() }}
	}
}

func (e *eye) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.viewers--; e.viewers == 0 {
		since := e.visits
		time.AfterFunc(lingers, func() { e.end(since) })
	}
}

// end ends what goes on, unless a page was opened since.
func (e *eye) end(since int) {
	e.mu.Lock()
	if e.visits != since {
		e.mu.Unlock()
		return
	}
	was := e.session
	e.session = nil
	e.names, e.rendered = map[string]*followed{}, map[string]*rendered{}
	e.mu.Unlock()
	was.stop()
}

// see returns what there is, as of a second ago at most. Its caller has entered.
func (e *eye) see() scene {
	e.looking.Lock()
	defer e.looking.Unlock()
	e.mu.Lock()
	now, was, session := time.Now(), e.scene, e.session
	e.mu.Unlock()
	if now.Sub(was.tried) < pause {
		return was
	}
	sight, err := session.monitor.Look(session.ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	s := was
	if s.err = err; e.scene.tried.Equal(was.tried) { // else something was done since
		s.tried = now
	} else {
		s.tried = time.Time{}
	}
	if err != nil {
		if s.away.IsZero() {
			s.away = now
		}
		e.scene = s
		return s
	}
	s.away = time.Time{}
	s.Sight = sight
	s.remember()
	e.scene = s
	return s
}

// remember adds what this look has seen to what is known of the past. It changes no slice that a page may read.
func (s *scene) remember() {
	m := moment{at: s.At, counted: s.Counted}
	who := map[identity.Name]look.Party{}
	story := map[identity.Name][]happened{}
	for name, of := range s.story {
		story[name] = of
	}
	there := map[identity.Name]bool{}
	for _, r := range s.Rows {
		there[r.Name] = true
		m.handOffs += r.HandOffs()
		if len(r.Holders) == 1 && r.Shares < 2 && r.Kind != look.KindSemaphore { // of several, another one may be the first each time
			who[r.Name] = r.First()
		}
		if what := became(s.who[r.Name], who[r.Name], r.Forced, s.At); what != "" && len(s.past) > 0 {
			story[r.Name] = tell(story[r.Name], happened{s.At, what})
		}
	}
	for name, before := range s.who {
		if !there[name] { // it is free
			story[name] = tell(story[name], happened{s.At, became(before, look.Party{}, nil, s.At)})
		}
	}
	const most = 1000 // names with a story
	for name := range story {
		if len(story) <= most {
			break
		}
		if _, holds := who[name]; !holds {
			delete(story, name)
		}
	}
	past := append(append([]moment{}, s.past...), m)
	s.past, s.who, s.story = past[max(0, len(past)-kept):], who, story
}

// tell adds to a story, and keeps its last ten lines.
func tell(story []happened, next happened) []happened {
	const most = 10
	all := append(append([]happened{}, story...), next)
	return all[max(0, len(all)-most):]
}

// became says what has become of who held a name; empty: it is the same hold.
func became(before, now look.Party, forced *look.Party, at time.Time) string {
	switch {
	case before.Owner == now.Owner && before.Token == now.Token:
		return ""
	case forced != nil && forced.Since != nil && at.Sub(*forced.Since) < 2*pause:
		return "It was " + forced.TookAway(at) + "."
	case now.Owner == "":
		return "It was held by " + named(before, at) + ", and is no longer."
	case before.Owner == "":
		return "It was taken by " + named(now, at) + "."
	default:
		return "It went to " + named(now, at) + "."
	}
}

// named is a party in words, without for how long.
func named(p look.Party, at time.Time) string {
	p.Since = nil
	return p.Who(at)
}

// explain returns what is known of why a name does not move, as of a second ago at most.
func (e *eye) explain(name string) (look.Explanation, error) {
	e.mu.Lock()
	f, session := e.names[name], e.session
	if f == nil {
		const most = 1000 // names with a page of their own
		if len(e.names) >= most {
			e.names = map[string]*followed{}
		}
		f = &followed{}
		e.names[name] = f
	}
	e.mu.Unlock()
	f.looking.Lock()
	defer f.looking.Unlock()
	now := time.Now()
	if now.Sub(f.at) >= pause {
		next, err := e.looker.ExplainAgain(session.ctx, name, f.last)
		if f.at, f.err = now, err; err == nil {
			f.last = next
		}
	}
	return f.last, f.err
}

// changed has the next look see what was just done.
func (e *eye) changed(name string) {
	e.mu.Lock()
	e.scene.tried, e.rendered = time.Time{}, map[string]*rendered{}
	f := e.names[name]
	e.mu.Unlock()
	if f != nil {
		f.looking.Lock()
		defer f.looking.Unlock()
		f.at = time.Time{}
	}
}

// deadlocks returns the circles of waits, as of some seconds ago. It asks for all keys: so where there are many it asks seldom.
func (e *eye) deadlocks() circles {
	e.circling.Lock()
	defer e.circling.Unlock()
	if time.Now().Before(e.circles.good) {
		return e.circles
	}
	e.mu.Lock()
	session := e.session
	e.mu.Unlock()
	began := time.Now()
	found, err := e.looker.Client.Deadlocks(session.ctx)
	const share = 40
	e.circles = circles{look.Chains(found), err, time.Now().Add(max(slow, share*time.Since(began)))}
	return e.circles
}
