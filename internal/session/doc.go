// Package session is the client as all other rooms see it: its connections and their health, ids, tenures by their
// number, options, hooks, and what follows a jump of a server's clock. It also has what every primitive does with a
// name: it sends commands until Redis answers, and commands that take effect once. For many names it has one timer,
// and a few goroutines for work that no caller waits for.
//
// The package knows the engines by three small interfaces: [Tenure], [Queue] and [Member]. The root, internal/core,
// internal/lock, the engines (internal/grant and internal/broadcast) and the primitives import it. It imports only
// packages below it: internal/clock, internal/due, internal/fail, internal/hub, internal/identity, internal/lease,
// internal/records, internal/retry and internal/lua.
package session
