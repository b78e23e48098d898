package core

import "time"

// Observer is documented by the root package.
type Observer struct {
	Queued     func(name string)
	Acquired   func(name string, token int64, waited time.Duration)
	Released   func(name string, token int64, held time.Duration)
	Lost       func(name string, token int64, reason error)
	Subscribed func()
	Down       func(err error)
	Up         func(away time.Duration)
}

func (o *Observer) queued(name string) {
	if o.Queued != nil {
		o.Queued(name)
	}
}

func (o *Observer) acquired(name string, token int64, began time.Time) {
	if o.Acquired != nil {
		o.Acquired(name, token, time.Since(began))
	}
}

func (o *Observer) released(t *turn) {
	if o.Released != nil {
		o.Released(t.tenure.name, t.token, time.Since(t.moment))
	}
}

func (o *Observer) lost(name string, token int64, reason error) {
	if o.Lost != nil {
		o.Lost(name, token, reason)
	}
}

func (o *Observer) subscribed() {
	if o.Subscribed != nil {
		o.Subscribed()
	}
}

func (o *Observer) down(err error) {
	if o.Down != nil {
		o.Down(err)
	}
}

func (o *Observer) up(away time.Duration) {
	if o.Up != nil {
		o.Up(away)
	}
}
