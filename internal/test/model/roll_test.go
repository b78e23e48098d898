package model

// A process in which many wait calls the roll when its subscription is confirmed: it looks whether a tenure
// is in the queue, rather than ask for it. Whoever is not asks, and is queued without a search.

// look is a part of the roll that concerns a tenure.
type look uint8

const (
	noLook look = iota
	looking
	present // and the process has not read that yet
	absent
)

// calling has the roll called after each confirmation.
func calling(c config) config {
	c.name += ", the roll is called"
	c.rolls = true
	return c
}

// lookFor looks for a tenure, unless a command of it may still run: then it asks.
func (w *world) lookFor(t id) {
	x := w.tenure(t)
	switch {
	case x.command != noCommand:
		w.ask(t)
	case (x.loose || w.strays(int(t)-1)) && !w.bugs.strayIsCalled:
		w.ask(t)
	case x.look == noLook || !w.bugs.staleLook: // a part that was read before a confirmation says nothing
		x.look = looking
	}
}

// looks is the script.
func (w *world) looks(n int) {
	w.tenures[n].look = absent
	if w.redis.place(id(n+1)) >= 0 {
		w.tenures[n].look = present
	}
}

// readsRoll is what the process makes of it.
func (w *world) readsRoll(n int) {
	x := &w.tenures[n]
	missing := x.look == absent
	x.look = noLook
	if missing && x.phase == waiting {
		w.send(id(n + 1))
		x.unqueued = true
	}
}

// canReadRoll: what a look has found is over once an acquire was sent.
func (w *world) canReadRoll(n int) bool {
	return w.tenures[n].look > looking && w.tenures[n].command == noCommand
}

// queuedTwice checks an acquire that does not look whether its tenure is queued. When it is sent again, it
// does.
func (w *world) queuedTwice(t id) {
	x := w.tenure(t)
	if x.unqueued && w.redis.place(t) >= 0 {
		w.violated(staleEntry, "t%d is queued a second time", t)
	}
	x.unqueued = false
}
