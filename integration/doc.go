// Package integration holds what the primitives promise against the topologies that people run: a standalone
// server, Sentinel and Cluster, in containers, and against what happens to them: restarts, failovers,
// migrated slots, killed connections, silent networks.
//
// The contracts themselves are in internal/test/contract, one for each primitive. Every test runs in containers
// when a Docker engine answers (LATCHKEY_IMAGE, by default redis:7-alpine), else on processes of the
// redis-server on the PATH; with LATCHKEY_ENGINE=processes on those in any case. With neither, the tests are
// skipped, which is said once, at the end; docker in LATCHKEY_REQUIRE makes it a failure.
//
// It is a module of its own, so that users of the library inherit none of Docker's dependencies.
package integration
