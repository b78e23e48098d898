package hub

// Source is where a hub subscribes. Its methods, but for the last two, are called with the hub's mutex: they
// do not block, and call no subscription.
//
// Nothing here ever sends UNSUBSCRIBE. rueidis v1.0.79 sends a PING behind each, counts what comes back, and
// panics when the server answers one of the two with an error, as a server does that is BUSY, LOADING, out of
// disk, or cut off from its primary. A subscription ends with its connection instead.
type Source interface {
	// Subscribe begins a subscription, which is told of each confirmation and message, and once of its end.
	Subscribe(s *Subscription)
	// Drop has a subscription hear nothing more. The server still counts it, until Cut.
	Drop(s *Subscription)
	// Left is told that a channel was given up, while so many others stay. It reports whether it is time for Cut,
	// so that the channels that nobody listens to any more do not grow without bound.
	Left(others int) bool
	// Idle is how many channels that nobody uses may be listened to.
	Idle() int
	// Cut ends the connections, and with them all subscriptions. It does not wait for that, but is called without
	// the mutex.
	Cut()
	// Wait returns when what Cut began is over.
	Wait()
}

// Subscription is one attempt to subscribe to a channel. A channel that has begun another hears nothing of it
// any more.
type Subscription struct {
	channel *Channel
	stop    func() // of [Sharded]
	line    *line  // of [Dedicated]
}

// Name is the channel.
func (s *Subscription) Name() string { return s.channel.name }

// Confirmed is told that the server counts the subscription.
func (s *Subscription) Confirmed() { s.channel.confirm(s) }

// Heard hands on a message.
func (s *Subscription) Heard(text string) { s.channel.heard(text) }

// Ended is told that the subscription is over, and why.
func (s *Subscription) Ended(err error) { s.channel.lost(s, err) }

// abandoned is how many channels nobody listens to may stay subscribed beside few others.
var abandoned = 1000 // fewer in a test

// tooMany reports whether it is worth a connection to be rid of what was left. It is not more than one new
// subscription for each channel that was given up.
func tooMany(left, others int) bool { return left > max(abandoned, others) }
