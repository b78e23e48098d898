package hub

// Source is where a hub subscribes. The hub calls Subscribe, Drop, Abandoned and MaxIdle with its mutex: they do not
// block, and call no subscription. It calls Cut and Wait without the mutex.
//
// No source ever sends UNSUBSCRIBE (rule 21). rueidis v1.0.79 sends a PING behind each UNSUBSCRIBE, and counts the
// replies. If the server answers one of the two commands with an error, rueidis panics. A server answers so if it is
// BUSY, LOADING, out of disk, or cut off from its primary. A subscription ends with its connection instead.
type Source interface {
	// Subscribe begins a subscription. The source tells s of each confirmation and message, and once of the end.
	Subscribe(s *Subscription)
	// Drop makes a subscription hear nothing more. The server still counts the subscription, until Cut.
	Drop(s *Subscription)
	// Abandoned says that the hub has given up a channel. others is how many channels stay. Abandoned reports whether
	// it is time for Cut: else the channels without listeners would grow without bound.
	Abandoned(others int) bool
	// MaxIdle returns to how many channels without users the hub may listen.
	MaxIdle() int
	// Cut closes the connections, and all subscriptions end with them. It does not wait for the end.
	Cut()
	// Wait returns when what Cut began is over.
	Wait()
}

// Subscription is one attempt to subscribe to a channel. Once the channel has begun another attempt, or was given up,
// the channel ignores the confirmations and the end of the earlier attempt.
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

// tooMany reports whether to close a connection, to get rid of the abandoned channels. Then the hub subscribes to the
// other channels again: that is not more than one new subscription for each channel that was given up.
func tooMany(abandoned, others int) bool { return abandoned > max(maxAbandoned, others) }
