package hub

// Source is where a hub subscribes. Subscribe, Drop, Abandoned and MaxIdle are called with the hub's mutex:
// they do not block, and call no subscription. Cut and Wait are called without it.
//
// Nothing here ever sends UNSUBSCRIBE (rule 21). rueidis v1.0.79 sends a PING behind each, and counts what
// comes back. It panics when the server answers one of the two with an error, as a server does that is BUSY,
// LOADING, out of disk, or cut off from its primary. A subscription ends with its connection instead.
type Source interface {
	// Subscribe begins a subscription, which is told of each confirmation and message, and once of its end.
	Subscribe(s *Subscription)
	// Drop makes a subscription hear nothing more. The server still counts it, until Cut.
	Drop(s *Subscription)
	// Abandoned says that a channel was given up, while so many others stay. It reports whether it is time for
	// Cut, so that the channels without listeners do not grow without bound.
	Abandoned(others int) bool
	// MaxIdle returns how many channels without users may be listened to.
	MaxIdle() int
	// Cut closes the connections, and with them all subscriptions. It does not wait for that.
	Cut()
	// Wait returns when what Cut began is over.
	Wait()
}

// Subscription is one attempt to subscribe to a channel. Once the channel has begun another, or was given up,
// what the attempt reports is ignored.
type Subscription struct {
	channel    *Channel
	stop       func()      // of [Sharded]
	connection *connection // of [Dedicated]
}

// Name returns the name of the channel.
func (s *Subscription) Name() string { return s.channel.name }

// Confirmed says that the server counts the subscription.
func (s *Subscription) Confirmed() { s.channel.confirm(s) }

// Heard takes a message.
func (s *Subscription) Heard(text string) { s.channel.heard(text) }

// Ended says that the subscription is over, and why.
func (s *Subscription) Ended(err error) { s.channel.lost(s, err) }

// maxAbandoned is how many channels without listeners may stay subscribed while there are few others.
var maxAbandoned = 1000 // fewer in a test

// tooMany reports whether to close a connection, to be rid of the abandoned channels. Then the others are
// subscribed again: not more than one new subscription for each channel that was given up.
func tooMany(abandoned, others int) bool { return abandoned > max(maxAbandoned, others) }
