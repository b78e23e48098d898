package explore_test

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// step is what can happen next. Its name is the same in each run that is at this state.
type step struct {
	name  string
	fault fault // "": it is none
	do    func()
}

// steps returns what can happen next, in an order that is always the same. At the end there is nothing.
func (r *run) steps() (all []step) {
	add := func(f fault, do func(), format string, args ...any) {
		if f == "" || r.left[f] > 0 {
			all = append(all, step{fmt.Sprintf(format, args...), f, do})
		}
	}
	r.mu.Lock()
	begun := map[string]bool{} // users of a client who have the same before them are alike
	for _, u := range r.users {
		p := r.clients[u.of]
		switch alike := fmt.Sprint(u.of, u.next, len(u.calls)); {
		case p.dead:
		case u.doing == idle && u.next < len(u.calls) && !p.closed && !begun[alike]:
			begun[alike] = true
			add("", func() { r.sees(u.of, u.name+" calls"); r.begin(u) }, "%s calls %s", u.name, u.calls[u.next].name)
		case u.doing == calling && !u.ended:
			add(cancels, func() { r.sees(u.of, u.name+" gives up"); u.ended = true; u.cancel() }, "%s gives up", u.name)
		case u.doing == holding:
			add("", func() { r.sees(u.of, u.name+" ends"); r.end(u) }, "%s gives back", u.name)
		}
	}
	r.mu.Unlock()
	r.linkSteps(add)
	over, moves := r.isOver(), 0
	for _, s := range all {
		if s.fault == "" {
			moves++
		}
	}
	for n, p := range r.clients {
		if p.dead || over {
			continue
		}
		add(dies, func() { r.die(n) }, "c%d dies", n)
		if !p.closed {
			add(closes, func() { r.close(n) }, "c%d closes", n)
			add(forces, func() { r.force(n) }, "c%d forces", n)
		}
	}
	if !over {
		if r.mends() {
			add(moments, r.moment, "a moment passes")
		}
		add(passes, func() { r.pass(lease - lease/6) }, "time passes")
	}
	if moves == 0 && !over {
		return append(all, step{name: "nothing else can happen: time passes", do: r.waits})
	}
	return all
}

// linkSteps are those of the network.
func (r *run) linkSteps(add func(f fault, do func(), format string, args ...any)) {
	count := map[string]int{}
	for _, l := range r.all() {
		role := fmt.Sprintf("c%d", l.of)
		if l.inbox {
			role += " inbox"
		}
		if count[role]++; count[role] > 1 {
			role += fmt.Sprint(" ", count[role])
		}
		asked, said, broken := l.heads()
		if asked != nil {
			add("", func() { r.runs(l, asked) }, "%s: runs%s%s", role, map[bool]string{true: ", late,"}[broken], asked.text(&r.names))
		}
		if said != nil {
			add("", func() { r.sees(l.of, said.text(&r.names)); l.deliver() }, "%s: reads%s", role, said.text(&r.names))
		}
		if broken || r.clients[l.of].dead {
			continue
		}
		if l.inbox {
			add(deafens, func() { r.sees(l.of, "deaf"); r.cut(l) }, "%s: breaks", role)
		} else if asked != nil || said != nil {
			add(breaks, func() { r.sees(l.of, "broken"); r.cut(l) }, "%s: breaks", role)
		}
	}
}

// take takes a step.
func (r *run) take(s step) {
	r.path = append(r.path, s.name)
	if s.fault != "" {
		r.left[s.fault]--
		r.recover = max(r.recover, recovery[s.fault])
		r.lossy = r.recover > 0
	}
	s.do()
	r.settle(whatIsFree)
	r.always()
}

func (r *run) runs(l *link, f *frame) {
	r.learn(l, f)
	l.run(false)
}

// die ends a process. What it has sent may still run.
func (r *run) die(n int) {
	r.clients[n].dead = true
	r.network.mu.Lock()
	r.dead[n] = true
	r.network.mu.Unlock()
	for _, l := range r.all() {
		if l.of == n {
			l.cut()
		}
	}
}

func (r *run) close(n int) {
	r.sees(n, "closes")
	r.clients[n].closed = true
	go r.clients[n].client.Close()
}

func (r *run) force(n int) {
	r.sees(n, "forces")
	r.forced = true
	go func() { _ = r.scene.force(context.Background(), r.clients[n].client) }()
}

// pass lets time pass, which each client may see.
func (r *run) pass(d time.Duration) {
	for n := range r.clients {
		r.sees(n, "time")
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(time.Until(end), lease/30))
		r.settle(whatIsFree) // health checks are answered meanwhile
	}
}

// cut breaks a connection. A client connects again after a moment, in which all else may go on, or not.
func (r *run) cut(l *link) {
	l.cut()
	r.left[moments], r.mending[l.of] = 1, true
}

// mends reports whether a client is about to connect again, and has not sent anything since.
func (r *run) mends() bool {
	for _, l := range r.all() {
		if asked, _, broken := l.heads(); asked != nil && !broken {
			delete(r.mending, l.of)
		}
	}
	return len(r.mending) > 0
}

// moment lets time pass until a client sends something.
func (r *run) moment() {
	before := r.sent()
	for n := 0; n < 50 && r.sent() == before; n++ {
		r.pass(often)
	}
}

// sent is how many requests are under way.
func (r *run) sent() (n int) {
	for _, l := range r.all() {
		l.network.mu.Lock()
		n += len(l.asked)
		l.network.mu.Unlock()
	}
	return n
}

// often is how far apart the moments are at which is looked whether something can happen.
const often = 10 * time.Millisecond

// waits lets time pass until something can happen.
func (r *run) waits() {
	if !r.lossy && !r.polls {
		r.violated("WAKE", "nothing was lost, and nothing is under way, and there are users whose calls have not ended")
	}
	for range 100 {
		r.pass(often)
		r.waited += often
		if r.waited > r.recover+r.polling() && !r.isOver() {
			r.violated("WAKE", "%v have passed, and there are users whose calls have not ended", r.waited)
			return
		}
		for _, l := range r.all() {
			if asked, said, _ := l.heads(); asked != nil || said != nil {
				return
			}
		}
		if r.isOver() {
			return
		}
	}
}

// polling is how long whoever polls may have to wait besides.
func (r *run) polling() time.Duration {
	if r.polls {
		return lease
	}
	return 0
}

// flow lets everything through from now on, as it comes.
func (r *run) flow() {
	go func() {
		for {
			moved := false
			for _, l := range r.all() {
				asked, said, broken := l.heads()
				switch {
				case broken && asked == nil:
					l.end()
				case asked != nil:
					l.run(false)
					moved = true
				case said != nil:
					l.deliver()
					moved = true
				}
			}
			if moved {
				continue
			}
			if _, ok := <-r.wakes; !ok {
				return
			}
		}
	}()
}

func (r *run) closeAll() {
	var all sync.WaitGroup
	for _, p := range r.clients {
		all.Go(func() { _ = p.client.Close() }) // also of one that is being closed
	}
	all.Wait()
}

// stop ends a run. Its clients find no server any more.
func (r *run) stop() {
	r.network.mu.Lock()
	for n := range r.clients {
		r.dead[n] = true
	}
	r.network.mu.Unlock()
	for _, l := range r.all() {
		l.cut()
		l.end()
	}
	r.closeAll()
	time.Sleep(soon) // calls that pause between two attempts look then
	for _, l := range r.all() {
		l.end()
	}
	r.server.Close()
	r.done.Wait()
	close(r.wakes)
}
