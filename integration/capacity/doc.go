// Package capacity measures what one server carries, and what a cluster of several does: docs/capacity.md has
// the numbers, and what follows from them. It measures how long Redis itself works, which depends on the
// machine, and not how long anybody waits. So it is run by hand, with `make capacity`, on a machine with
// nothing else to do.
package capacity
