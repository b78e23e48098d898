// Package model is a model of the protocol by which processes wait for a lock and hand it on, in Redis and
// inside a process, and a search of all that can happen in it. It is tests alone: nothing imports it. A
// change of the protocol is tried here first, where a wrong one is found in seconds and with the shortest way
// to it.
//
// # What is modelled
//
// Redis is an owner with its token, a counter of tokens and a queue of owner ids; the scripts acquire, offer,
// release and force are one step each. A process is a line of goroutines of which one has the turn, and what
// goes with the turn: a tenure that waits or holds. A tenure's commands and their answers are under way for
// any time, as are the messages of its process's inbox. Anything that may happen next may happen, in any
// order. What goes wrong (the kinds of faults) happens as often as a configuration allows, wherever that is
// worst.
//
// # What is left out
//
//   - Time. A lease ends when nobody trusts it any more, at any moment; that a process trusts it no longer
//     than Redis keeps it is taken for granted, and so is that it can tell by the clock whether a grant is
//     older than an answer, for which the token counter stands. The timer that makes an offer although nobody
//     seems to wait is a number of hand-offs.
//   - The poll. A waiter asks again when a lease ends, when its subscription is confirmed, and when a grant
//     is not true any more; that it asks every few seconds besides would hide what is asleep.
//   - The order of goroutines in a line. They are alike, so that their number is all there is.
//   - Attempts that do not wait, and clients that close, but for what concerns a lock that lingers. Re-entry,
//     and minimal holds.
//   - How long a release goes on to be repeated after an acquire got no answer: here for as long as a copy is
//     under way.
//   - A token counter that is lost. Tokens are at least the server's clock, so that it does not matter.
//
// # A read-write lock
//
// Its write half is the lock above, with the scripts of a read-write lock (the files rwlock_*). What is added
// are readers in Redis, each with a lease of its own; the line of the readers of a process, and the tenure
// that they share; and the downgrade, its answer and its copies. A reader that is granted the lock takes one
// from the token counter, for the clock. A poll happens in three places alone: after a crash was seen, when a
// lease ends, and when as many have joined a tenure as fit between two polls. Left out are readers of
// Redisson, leases of different lengths in one process, re-entry, attempts that do not wait, an Unlock beside
// a downgrade that is under way, and slots that move. A release and a cancel are the same script. A livelock
// is not seen.
//
// # Who polls
//
// A process may poll instead (the file polling_test.go). Each of its goroutines has a tenure of its own,
// which asks again and again and is never queued. It has no inbox. Its scripts may not publish, nor ask who
// listens: they take everybody who is queued for alive, and whom they grant the lock asks at some time. At
// rest such a process pauses. A copy that took the lock in its pause is found by its next question, so that
// is no ORPHAN. It is not granted the lock before somebody who is queued and lives (OVERTAKEN).
//
// # A roll call
//
// After its subscription was confirmed, a process may look whether a tenure is in the queue rather than ask
// (the file roll_test.go). Whoever is there goes on waiting. Whoever is not asks with an acquire that
// does not look for it: a second entry is a violation (STALE-ENTRY). A tenure of which a copy may be under
// way asks as ever. Left out is that the queue is read in parts: package lua checks that against a model of
// the queue.
//
// # A lock that lingers
//
// After Unlock a process may keep the lock (the files linger_*). The tenure is parked: it stays in the line,
// and nobody has the turn. Whoever comes next in the process goes on with it, as in a local hand-off. Redis
// does not know whether the lock is held. So all that must be true of a tenure between two turns must be true
// of one that is parked, for as long as it is.
//
// Redis sends Want to the owner for the first who queues, and for a TryLock of another process. A parked
// tenure is released then, and also at some time by itself. While it is held Want is noted, and Unlock
// releases. A process that shuts down releases what is parked.
//
// A TryLock does not stand in line. It takes the turn with what is parked, and offers that if an offer is
// due, but does not queue. Else it asks Redis. It waits for the answer to its Want, or until there can be
// none, and asks once more. What it had is parked if nobody has the turn.
//
// Left out are the time that a tenure lingers; inboxes that are opened late, without which nothing is parked;
// and that a late copy of an attempt does nothing.
//
// # Permits
//
// A semaphore has a model of its own (the files permit_*), with the same search. Its Redis is a number of
// free permits, who holds how many with which token and lease, and a queue of requests of different sizes.
// The scripts are written for ids of any kind, so that those of the search are those that a trace is compared
// with. One script carries out what a process has sent and has to give back, or one of it (batch runs).
//
// A process has a request for each goroutine. Where permits are passed on, those who want a single one stand
// in a line, whose delegate competes. Its turn ends with the grant, and the next one competes. Whoever gives
// back passes the permits to one in the line, as often as the budget allows, and until the process hears that
// others wait. Then the whole line competes.
//
// The capacity changes as a configuration says, and a delete takes everything away. Nobody says that there
// are fewer permits than before, nor that one has become the first in the queue who asks for more than there
// are. The poll finds that: at these times, at the end of a lease and after a crash each process asks for its
// oldest waiter, and for the next one when that one does not wait any more.
//
// Left out are parts that are given back before the rest, attempts that do not wait, requests for all that is
// free, plain permits, the roll call, permits of Redisson, and the limits of what one script does. The first
// four are in the traces. Left out is also that a process remembers for a while that others wait.
//
// # What must be true
//
// After every step: no two goroutines hold, in one process or in two (ME); tokens grow from hold to hold
// (TOK); what a process trusts is so in Redis (TRUST); a line has somebody with the turn (LINE); a process
// hands on inside only so many times while another one is queued and connected, and no message says so that
// is still unread (HUNGER). After ForceUnlock, and a restart without data, the first three are excused until
// the process has been told.
//
// When nothing is under way, all that was held is unlocked, and every message is read: the lock is not free
// while somebody sleeps (WAKE) or is queued (LEAK); it is owned by nobody who does not know, or knows better
// (ORPHAN); nothing is queued for nobody (STALE-ENTRY); and who was always connected has its place in the
// queue (DROPPED).
//
// Of a lock that lingers besides: nobody sleeps while a tenure is parked (WAKE), and nothing is parked when
// its process has shut down (ORPHAN). Nobody waits for the end of a linger unless a message was lost
// (DELAYED). A TryLock is not refused a tenure that was parked when its process heard of it (SPURNED).
//
// Of a read-write lock besides: readers may hold together (ME); a reader's token is not smaller than the
// last writer's (TOK); a tenure is joined only so many times while somebody waits (HUNGER); no reader is
// granted the lock before a writer that was queued before (OVERTAKEN); the entries of a process that let a
// lease end are gone when another one asks (SLOW). And when nothing is under way but holds that go on,
// whoever is next and could hold with them does (WAKE).
//
// Of permits: holders trust no more of them than there are, or were when they were granted (SURPLUS). What is
// free and what is out are all that there are, and nobody has more than it asked for (COUNT). A grant has a
// greater token than all that were given out or reserved before (TOK). Nobody is granted permits before
// somebody who is queued, listens, and stands in front of it, unless it may pass (OVERTAKEN). Nothing is
// passed on while another process is queued and has been heard of (HUNGER). TRUST, LINE, ORPHAN, STALE-ENTRY
// and DROPPED are as above. When nothing is under way but holds that go on, nobody waits that fits and is
// next (WAKE), and the first in the queue does not ask for more than there are (TOLD).
//
// # The rules that were found here
//
// Those of docs/protocol.md hold with local hand-offs too. What these add, each with the seeded bug that
// breaks it:
//
//  1. An offer has a fresh id, and nobody of the process holds until it is answered. (same id; hold while
//     offered)
//  2. An id ends by an offer as by a release: no acquire of it may be unanswered. (offer unsettled)
//  3. An offer that finds neither id has done nothing: acquire. (gone is owner)
//  4. A cancelled offer that got no answer ends both ids. (only fresh released)
//  5. The turn is passed on by whoever has it, also if that is just being cancelled, and never with what was
//     lost. Who takes over a wait asks again, because nobody heard the answer. (turn dropped; loss is passed
//     on; heir does not ask)
//  6. An id whose command got no answer, or that was told it is queued when it held, may be queued or own the
//     lock again. However it ended, also by an offer or a loss, it is released once more. (stray is ignored)
//  7. A later token for an id that holds or is offered says that it was taken away and has come back: give
//     up, and release. (grant twice ignored)
//  8. What ForceUnlock took away is named with its token, and a waiter remembers it: the answer that granted
//     it may be under way. (forced is forgotten; forced without token)
//  9. A grant that is older than an answer which says queued is over. (undated)
//  10. Who is granted the lock by an offer is told that the offering process waits. (behind back)
//  11. What is parked leaves the line before its release is sent, in one step with the question whether it is
//     parked. (turn while released; want ends a turn)
//  12. Unlock looks again once it has parked: a Want, or the end of the client, may have come just before,
//     when nothing was parked. (looks once)
//  13. A Want counts also before the grant is known, and so does a grant that says that others wait. No Want
//     comes in the latter case. (early want is forgotten; others are forgotten)
//  14. Tokens are reserved also where nobody is queued. Without them Redis sends no Want. (unmarked)
//  15. A turn from what was parked is a local hand-off: it has a new token, and brings the next offer nearer.
//     (token again; uncounted)
//  16. Who tried is told after the release is answered, and does not wait for that for ever. (answers early;
//     unbounded)
//  17. What a TryLock had is parked only if nobody has the turn, and nothing else is parked. (parks beside)
//  18. A TryLock never queues, nor does its offer. Whoever inherits that offer does. (queues at last; offer
//     queues; heir tries)
//  19. A look counts only if no acquire was sent since, no confirmation has come since, and no copy of an
//     acquire can be under way. (look stays; stale look; stray is called)
//
// # What the scripts do
//
// The files trace_* compare the Redis of the model with the scripts. A recorder (internal/test/redistest) lets
// through one script at a time of all processes that use some locks, and writes down what it was asked for,
// replied and published, and who listens then. The checker shows each step to the functions acquire, offer,
// release, force and so on, with the ids numbered and the tokens made small, and compares the replies, the
// messages and the order of tokens. What the model leaves out is added there: the ends of leases, by the
// server's clock; which of the readers' tokens must be new; that a release need not name an entry. Where the
// record does not say whether a lease had ended, or somebody still listened, all that may be are followed.
// The first step that none of them explains is named, with those before it (TestTraces). So a script and the
// model cannot part without being seen: TestSeededScriptBugs changes a script.
//
// The steps of semaphores are shown to the same functions as in the search, with the ids and tokens that
// there are (the files trace_permit_*): those of leased permits, with a budget, with overtaking and with
// waiting for a capacity, and of plain ones. There too the ends of leases, and who listens, are followed both
// ways where the record does not say.
//
// Not recorded are what rests after a hold, baskets, locks over several servers, slots that move, and clients
// without pub/sub.
//
// # A larger search
//
// The configurations are searched to their ends in seconds. With LATCHKEY_SOAK=1 so are all pairs of faults:
//
//	LATCHKEY_SOAK=1 go test -count=1 -timeout 2h -v ./internal/test/model
//
// A violation comes with the shortest sequence of steps that leads to it: c0 is a client, t1 a tenure; the
// tenures of two clients are t1, t3, t5 and t2, t4, t6.
package model
