// Package core is the inside of the client and of the primitives: what the root package and the others are
// thin faces of. It puts together internal/lua (what is atomic in Redis), internal/hub (the subscription),
// internal/wait (the blocking loop) and internal/lease (renewal and loss).
//
// # The protocol
//
// A lock is a hash: owner id, and token. Beside it is a list of waiters. An acquire takes a lock that is free
// and that nobody queues for, and otherwise appends to the list; a release takes the first waiter from the
// list whose inbox the server counts a subscriber of, makes it the owner, and publishes that to this inbox
// alone. So a hand-off costs two commands and one trip, however many wait.
//
// # The rules
//
// They were found by breaking a model of the protocol. Each has a test that fails without it.
//
//  1. Whoever finds the lock free while somebody is queued grants it to the head: acquire, TryLock, re-check,
//     cancel, a release that comes too late, ForceUnlock. Nobody else would. (lua: TestFreeButQueued)
//  2. An owner id is for one tenure, and its release or cancel is sent only after every acquire of it was
//     answered, or is ahead of it on the same connection, or cannot be answered any more. For the last case
//     the cancel is repeated, so that a copy which arrives late takes the lock for nobody only about as long
//     as it was late. An attempt that may not wait says until when it may run, by the server's clock: a copy
//     that arrives later does nothing. (wait: TestWaitersAtRandom; TestLateCopyOfAcquire,
//     TestAttemptThatArrivesLate, TestTryLockAfterAnOutage; lua: TestLateAttempt)
//  3. A grant for a tenure that is over is released at once; a repeated grant is ignored; a grant that races
//     the end of a wait is given back; a grant may arrive before the reply that says "queued"; an answer that
//     came to be after a grant and says otherwise ends the hold. (TestGrantForNobodyIsReleased; wait:
//     TestGrantRacesCancellation, TestAnswerContradictsGrant, TestWaitersAtRandom)
//  4. Every confirmation of the inbox is followed by a question sent after it for each waiter, also if its
//     acquire is unanswered at that time. The poll asks for the process's oldest waiter only. (wait:
//     TestRecheckIsNotForgotten, TestIdleWaitersAskOnce; TestSubscriptionKilled)
//  5. A grant by message is good for a short lease, two seconds at most, until its first renewal, which is
//     sent 20 to 50 ms after it, also when it has nothing to add. When it ends without one, that client's
//     other entries are dropped. A client whose commands have failed for a third of its lease closes its
//     inbox. (lua: TestUnresponsiveClientIsDropped, TestShortGrantEndsBeforeTheKey; lease:
//     TestShortLeasesAreConfirmed; TestGrantIsConfirmedSoon, TestStoppedWaitersCostOneShortLease,
//     TestClientThatCannotSendClosesItsInbox)
//  6. A first in the queue that does not fit, as a request for more permits than are free, is tested for life
//     all the same, and dropped when it is gone; and a cancel serves those behind it, which may fit now.
//     (lua: TestPermitsAgainstModel; semaphore: TestKilledHeadIsDropped, TestReleaseGrantsToSeveral)
//  7. Nobody who waits sleeps longer than the lease of whoever may hold before it, nor longer than the short
//     lease. The shortest lease below that of those who wait, or were granted while others waited, is kept
//     beside the queue. Whoever asks is told it by the reply; whoever makes it shorter tells all who wait. So
//     whoever is next finds a lease at its end, however short it is, whoever held it, and whoever left in
//     between. (TestLeasesEndForWhoeverIsNext, TestLeaseEndIsKnown, TestLeases; lua:
//     TestShortestLeaseIsKnown, TestMinHoldLeavesTheRest)
//  8. ForceUnlock tells the holder up to which token it was taken away, and ends the handing on inside its
//     process. A waiter remembers it: the answer that granted it may be under way. (TestForceUnlock,
//     TestLossEndsTheHandingOn)
//  9. A release that got no answer, and whose repetition finds the lock in other hands, has succeeded, if its
//     first send was within the trust of the lease. (TestReleaseReplyLost)
//
// Handing on inside a process (see handon.go) adds these; package internal/model searches all its
// interleavings:
//
//  10. An offer is sent only while nobody of the process holds, and under a fresh id, which either owns the
//     lock or is queued after it. So a copy that comes late finds the old id gone and does nothing. Until it
//     is answered it is repeated, and nobody holds. (TestOfferGoesAstray, TestLateCopyOfOfferWhileHeld; lua:
//     TestOfferPasses, TestOfferKeeps)
//  11. Whoever leaves the line passes on what it was left: the tenure that holds, or its place in the queue.
//     When nobody stands behind, that is released, or cancelled together with what was offered for it.
//     (TestOfferCancelled, TestPlaceIsInherited, TestShutdownWithALine; wait: TestLineLosesNothing)
//  12. The first that queues behind a process which hands on inside tells it; as the message can be lost, that
//     process offers the lock also unasked. (TestOthersGetTheirTurn; lua: TestWantIsTold)
//  13. Tokens are reserved in Redis before they are used, and never further than 5 ms ahead of its clock. So
//     what is not used need not be written back, which a killed process could not do. Of a name that is ahead
//     of the clock already, hardly more are reserved than are used. The highest token that a client has seen of
//     a name goes with its commands, and concerns no other name. (TestTokensAtFullSpeed,
//     TestNameAheadOfTheClock, TestFloorIsKept; lua: TestReservedTokensStayNearTheClock)
//
// # Semaphores
//
// A semaphore is the same with other scripts (permit/trade.lua): what is free is a number, every request has
// a place of its own in the queue, and one script grants to as many as fit. Its rules are those above, and
//
//  14. What an id holds is looked up before it takes or is granted anything, so that a late copy, which may
//     also have queued it a second time, takes nothing twice; and a partial release says how many permits
//     stay. (lua: TestLateCopiesOfTakes, TestLateCopyOfPartialRelease)
//  15. Commands that cannot tell by what is there whether they were done (those of plain permits, and changes
//     of the capacity) leave a record of their id, which is kept until the client says that it was answered
//     and cannot be under way any more, or for ten minutes; and they are not sent for longer than nine.
//     (semaphore: TestRepliesLost)
//  16. A script writes all that it changes after it has read all that it needs, so that foreign data under a
//     companion's name or a lack of memory leave nothing half done; what gives back is not refused for lack
//     of memory. Numbers that others may have written are looked at before they are counted with: what is
//     no number, or greater than there can be, is foreign data as another type is, and an entry that nobody
//     of ours writes is dropped. (lua: TestPermitsWhenMemoryIsFull, TestGiveBackBesideForeignData,
//     TestAbsurdLocks, TestAbsurdSemaphores, TestAbsurdLatches, TestAbsurdBarriers)
//
// # Latches and barriers
//
// They grant nothing: a change is published once for all that wait, whose client reads the state once for all
// of them. A waiter belongs to a generation, and is told what became of that. Their rules are
//
//  17. Every command that may change something has an id, under which Redis records what came of it, as in
//     rule 15, also when that was nothing, so that a late copy does nothing; and whoever gives up an arrival
//     that may still arrive leaves a record that it must not. (lua: TestLatchAgainstModel,
//     TestBarrierAgainstModel; countdown: TestRounds; barrier: TestGenerations)
//  18. Whoever waits has read the state after the subscription was confirmed, at that time or later; and the
//     states that were read are a chain, of which nobody misses one. A state names the generations that ended
//     badly, so that also who hears of it late knows. What is not known any more is said as such, and not
//     called broken. (wait: TestEverybodyGetsThere; countdown: TestGenerationOfAWaiter,
//     TestRacesAgainstModel; barrier: TestHearsOfItLate)
//  19. All arrivals of a client at a barrier have one lease, which its regular reading renews, and whose end
//     everybody who waits knows and looks at. With it the client says how many they are: what Redis has lost
//     breaks the generation, and so does a party that left and could not say so. (barrier:
//     TestDeadPartyBreaks, TestActingProcessKilled, TestLost, TestRolledBack, TestErrorWhileWaiting)
//  20. Who takes part in a barrier is a member, with a lease that is renewed also between generations, and
//     whose end breaks it whether anybody waits or not. A membership has a number and ends once, so that no
//     late copy begins it again. A client says how far it has seen the barrier come: a Redis that is behind
//     has lost something, and nobody goes on from what is there. (barrier: TestPartyDiesAtWork,
//     TestLateCopyOfMembership, TestRolledBack)
//
// # The ends of things
//
//  21. No UNSUBSCRIBE is sent: a server that answers it with an error, as one that is busy or loading does,
//     would end the process (package hub). A subscription ends with its connection.
//     (TestServerRefusesForAWhile, TestCloseWhileRefused, TestServerRefusesWhoWaitsForReplicas)
//  22. A client that is closed waits for the queues for the release timeout at most, and then for less than a
//     second, whether Redis answers or not. What was held then can be released until its lease is over.
//     (TestCloseOnASilentServer, TestUnlockAfterClose)
//  23. What Do returns is about the work, not about the release: whether it ran, and whether it was alone.
//     (TestDo…)
//
// # The server's clock
//
//  24. Redis ends leases by its wall clock, which may be set. Each answer that tells it is compared with the
//     one before; who holds something asks for it every two seconds, and who is granted something whose token
//     does not fit asks before going on. Where no more was left of a lease than the clock has gone forward
//     its trust ends with that answer, unless it was granted by a later one; all other holds are renewed at
//     once, and no grant is dated by what was known before. A lease says beside itself how long it is:
//     whoever finds that more is left cuts it, which takes no time from a holder who lives.
//     (TestForwardJump…, TestBackwardJump…, TestGrantAfterAJump, TestJumpsAreSeen; lease:
//     TestJumpEndsWhatMayBeOver, TestLeaseFromBeforeAJumpIsConfirmed; lua: TestLeaseIsCut,
//     TestPermitLeaseIsCut, TestTimeOfLatchIsCut, TestLeaseAtBarrierIsCut)
//
// # Others at the same Redis
//
//  25. A message is a hint until it concerns somebody. One to a waiter names it with a secret that only its
//     client can compute, and those who can read what is in Redis. A token that is too far from what the
//     waiter knows is asked for, as are permits that nobody would ask for later. The news of a barrier is
//     believed when it says what comes next after the generation that is known. What nobody can read makes
//     all waiters ask, one after the other and slowly. (TestForgedMessages, TestForgedByWhoeverReads,
//     TestForgedPermits, TestUnknownMessages; countdown, barrier: TestForgedNews)
//
// # Slots that move
//
//  26. A slot of a cluster may stay open between two primaries for any time, with some keys on each. The old
//     one can make no key, and what it lacks may be absent or moved; a call goes to the new one when its
//     first key is not at the old one. So a call names only the key with the name itself; a script looks at
//     what it must have before it writes, makes no companion that may be on the other side, writes what is
//     new before it deletes what was, and never needs a key again that it let go. What it cannot do passes
//     like TRYAGAIN, and did nothing. Which companions exist nowhere the client finds out, asking for each by
//     itself. (contract: TestSlotMovesInTheMiddleOfEverything,
//     TestQueueOfAMovingSlotIsMadeOnce, TestStuckHolderIsLostAlone; lua: TestMovingSlotsPass,
//     TestOfferThatWaitsForAMovingSlotQueuesNothing, TestRenewalsOfAMovingSlotAreApart; lease:
//     TestStuckIsLostAlone)
//
// # Hooks
//
//  27. The user's hooks and logger are told when all is done that must be. Those of a call hold up that call,
//     and what it had acquired is released when they panic; nothing waits for the others. (TestHookPanics,
//     TestHookPanicsInTheMiddle, TestHooksBlock)
//
// Rule 7 is stricter about polling than it would have to be, so that no hand-off pays for an announcement:
// idle waiters cost one question every two seconds for each process and lock, not one every ten.
package core
