// Package robustness composes everything that latchkey offers at random, while things fail, and judges from
// outside Redis what came of it.
//
//   - plan: what an episode consists of, and what all rooms share. draw.go makes it from a seed.
//   - traffic: processes that use the public API alone.
//   - witness: what they write down, in memory that outlives them.
//   - faults: the servers and processes, what fails, and what that excuses.
//   - judge: what must be true all the same.
//   - episode.go, leftovers.go, report.go: how it runs, what it leaves, and what it says.
//   - mutations.go: what the harness must find.
//
// README.md says how to run it, and which room imports which.
package robustness
