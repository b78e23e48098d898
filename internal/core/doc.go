// Package core puts the client together: [Open] dials, [Wrap] takes existing rueidis clients, and with lazy
// connecting the connections come later. Only the root package imports core. The client itself is in
// internal/session.
//
// docs/protocol.md has the rules of the protocol, each with its tests. Comments everywhere cite the rules by number.
package core
