// Package robustness composes everything that latchkey offers at random, while things fail, and judges from
// outside Redis what came of it.
//
//   - plan.go, object.go: what an episode consists of, made from a seed.
//   - worker.go, clients.go, traffic_*.go: processes that use the public API alone.
//   - witness.go: what they write down, in memory that outlives them.
//   - scene.go, fault*.go: the servers, what fails, and what that excuses.
//   - judge*.go: what must be true all the same.
//   - episode.go, crew.go, report.go, monitor.go: how it runs, and what it says and keeps.
//
// README.md says how to run it.
package robustness
