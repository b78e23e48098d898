// Package latchkeytest is a kit for tests of programs that use latchkey: clients on a server of the test's
// own, ways to make things go wrong, a hold for functions that take one, and a check of the order in which
// locks are taken.
//
//	func TestTransfer(t *testing.T) {
//		bank := NewBank(latchkeytest.Open(t)) // the program under test
//		...
//	}
//
// [Open] is enough for a program of one process. [NewServer] has several clients of one server, each in place
// of a process, and all that can go wrong: the server is slow, or away ([Server.Slow], [Server.Down]), a
// process is killed ([Server.Kill]), time passes until its leases have ended ([Server.Pass]), a hold is lost
// ([Lose]). None of these takes longer than milliseconds.
//
// # The server
//
// It is miniredis, in the process of the test, without a port unless [Server.URL] is called. By itself the
// clock of miniredis stands still for keys that expire, so that no lease would ever end; here it moves. With
// [OnRedis] the same test runs on a real Redis, with a key prefix of its own. The keys under that prefix are
// removed when the test ends; the server is never flushed.
//
// Everything is closed when the test ends. A hold that was not unlocked by then is logged, with the line that
// took it. A goroutine of latchkey that goes on running fails the test. The kit looks for that when no other
// test of the binary has a server of this kit, and the last of them fails. Goroutines of clients that were
// not opened here count as well when they began meanwhile: [WithoutLeakCheck] is for tests that run beside
// such clients.
//
// Tests may run in a bubble of testing/synctest: [Open] inside of it. Then leases, pauses and deadlines take
// no time at all. [Server.URL] and [OnRedis] do not work there, because a bubble cannot wait for a network.
//
// # The order of locks
//
// Two goroutines that take the same two locks in different orders can wait for each other for ever. Tests
// hardly ever see that happen. So each client of this kit notes which lock is asked for inside which: with a
// context that is derived from the context of a hold. The test fails as soon as two such orders contradict
// each other, also in a circle of three or more, although nothing has blocked. The report has both lines of
// each order. The kernel of Linux checks its locks in the same way (lockdep).
//
//   - Orders are those of classes of names: orders:42 and orders:43 are both orders:*. [WithClass] says what
//     a class is. Names of one class must not contradict each other either: a transfer
//     that locks both accounts in the order of its arguments is found once it is called in both directions,
//     and one that sorts them is right.
//   - A Lock that re-enters has no order.
//   - A call that does not wait cannot deadlock: TryLock, TryDo and TryAcquire come after nothing. Locks that
//     are asked for inside their holds come after them. TryLockFor and TryAcquireFor wait.
//   - A read half counts like any lock. Two readers do not exclude each other, but a writer that waits
//     between them makes the second one wait for the first.
//   - The names of a multilock have no order among each other, because it takes them in one that cannot
//     deadlock. All of them come after the hold outside.
//   - Permits of a semaphore count like a lock, whatever its capacity is: it can be exhausted. Plain permits
//     (semaphore.NewCounting) have no context, so that nothing comes after them.
//   - A lock around all others does not excuse them: they are reported as if it were not there.
//
// Orders are kept for one test, as names in tests are often made up. With [AcrossTests] two tests that
// contradict each other are found as well, and the later one fails. [WithoutOrder] switches the check off.
package latchkeytest
