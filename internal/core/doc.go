// Package core puts the client together: [Open] dials, [Wrap] takes rueidis clients that are there, and with
// lazy connecting the connections come later. Only the root package imports it. The client itself is
// internal/session's.
//
// docs/protocol.md has the rules of the protocol, each with its tests. Comments everywhere cite them by
// number.
package core
