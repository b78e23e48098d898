// Package latchkeytest is a kit for tests of programs that use latchkey. It gives a test clients on a server
// of its own, ways to make things go wrong, and a hold for functions that take one. It checks the order in
// which locks are taken.
//
//	func TestTransfer(t *testing.T) {
//		bank := NewBank(latchkeytest.Open(t)) // the program under test
//		...
//	}
//
// [Open] is enough for a program of one process. [NewServer] gives several clients of one server: each stands
// for a process. With it things go wrong: the server is slow or away ([Server.Slow], [Server.Down]), a
// process is killed ([Server.Kill]), leases end ([Server.Pass]), a hold is lost ([Lose]). Each takes
// milliseconds.
//
// # The server
//
// The server is miniredis, in the process of the test. It has no port before you call [Server.URL]. The clock
// of miniredis stands still for keys that expire; here it moves, so that leases end. With [OnRedis] the same
// test runs on a real Redis, under a key prefix of its own. When the test ends, the keys under that prefix
// are removed; the server is never flushed.
//
// When the test ends, everything is closed. A hold that is still locked is logged, with the line that took
// it. A goroutine of latchkey that still runs fails the test. The kit looks when no other server of the binary
// is open; then the test that ended last fails. It also finds goroutines of clients that your program opened
// in that time without the kit: [WithoutLeakCheck] is for tests beside such clients.
//
// Tests may run in a bubble of testing/synctest: call [Open] inside it. Then leases, pauses and deadlines
// take no time at all. [Server.URL] and [OnRedis] do not work there, because a bubble cannot wait for a
// network.
//
// # The order of locks
//
// Two goroutines that take the same two locks in different orders can wait for each other for ever. Tests
// hardly ever see that happen. So each client of this kit notes which lock is asked for inside which: the
// context of the inner call is derived from the hold's. The test fails as soon as two orders contradict each
// other, also in a circle of three or more, although nothing has blocked. The report has both lines of each
// order. The kernel of Linux checks its locks in the same way (lockdep).
//
//   - An order is between classes of names: orders:42 and orders:43 are both of class orders:*. [WithClass]
//     says what a class is. Names of one class must not contradict each other either. A transfer that locks
//     both accounts in the order of its arguments is found once it is called in both directions; a transfer
//     that sorts them is right.
//   - A Lock that re-enters has no order.
//   - A call that does not wait cannot deadlock: TryLock, TryDo and TryAcquire come after nothing. A lock
//     that is asked for inside such a hold comes after it. TryLockFor and TryAcquireFor wait.
//   - A read half counts like any lock. Two readers do not exclude each other, but a writer that waits
//     between them makes the second one wait for the first.
//   - The names of a multilock have no order among each other, because it takes them in an order that cannot
//     deadlock. All of them come after the hold outside.
//   - Permits of a semaphore count like a lock, whatever the capacity: it can be exhausted. Plain permits
//     (semaphore.NewCounting) have no context, so nothing comes after them.
//   - A lock around all others excuses nothing: the others are reported as if it were not there.
//
// Orders are kept for one test, because tests often make names up. With [AcrossTests] two tests that
// contradict each other are found as well, and the later one fails. [WithoutOrder] switches the check off.
package latchkeytest
