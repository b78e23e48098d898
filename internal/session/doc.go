// Package session is the client as all other rooms see it: its connections and their health, ids, tenures by
// their number, options, hooks, and what follows a jump of a server's clock. It also has what every primitive
// does with a name: sending commands until they are answered, and commands that take effect once; and for
// many names: one timer, and a few goroutines for work that no caller waits for.
//
// It knows the engines by three small interfaces: [Tenure], [Queue] and [Member]. The root, internal/core,
// internal/lock, the engines (internal/grant and internal/broadcast) and the primitives import it. It imports
// only what is below: internal/clock, internal/fail, internal/hub, internal/lease, internal/retry and
// internal/lua.
package session
