// Package broadcast lets goroutines of many processes wait for a state in Redis whose change releases them
// all at once, as that of a latch or a barrier does. It knows no primitive: a primitive says how to read
// its state.
//
// A [Group] is all that wait for one name in this process. They share a subscription, and a [Watch], which
// reads the state once for all of them and shows it as a chain of [View].
package broadcast
