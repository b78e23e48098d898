// Package property tests all primitives together, by their public methods alone: random operations of locks,
// semaphores, latches and barriers on three names that they share, by two clients, against a model of what
// the documentation says.
//
// One goroutine makes all calls, one after the other. So after each of them the model knows what it must have
// returned, which of those that wait must have gone on and with what, and what Inspect must say. Whoever has
// to wait does so in the background: before the next operation it is seen in the queue. Where the
// documentation leaves open who is next, as rlock does between its own process and others, the model takes
// any of those that it may be. Whether a lock lingers cannot be foreseen: the model knows that it may, with
// whom, and until when. Whether an Await has looked at a latch cannot be seen from outside, so that the model
// keeps all that it may have seen.
//
// A call that was given up has returned, and what it has sent may come later: a client is asked about that,
// beside its public methods. So the models hold on a busy machine too. Clients that stall show it, whose
// connections are late now and then.
//
// A name that is one kind of thing must refuse all others with ErrWrongType, and must be as it was after
// that. Counting and leased semaphores and latches are all a number in Redis, which cannot be told apart: of
// those only one at a time is used under a name.
//
// What is done once, shared, or run at ticks has models and names of its own. Of Share at most one call runs,
// all others are seen to wait, and whoever waits as it ends gets what it got. Of Every the server's clock is
// set at will, and its ticks are hours apart: so nothing is due by itself, and the model knows which tick who
// takes part must run, and that nobody else does. Clients die there: their functions do not return.
//
// LATCHKEY_SEED repeats a run, LATCHKEY_SOAK makes it longer. A failure prints the seed and what was done
// under the name up to then.
package property
