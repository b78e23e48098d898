// Package broadcast lets goroutines of many processes wait for a state in Redis. A change of the state releases all
// of them at once, as with a latch or a barrier. The package knows no primitive: a primitive says how to read its
// state.
//
// A [Group] has the goroutines of this process that wait for one name. They share a subscription, and a [Watch],
// which reads the state once for all of them and shows it as a chain of [View].
package broadcast
