------------------------------ MODULE latchkey ------------------------------
(***************************************************************************)
(* How processes wait for a lock of latchkey and hand it on, in Redis.     *)
(*                                                                         *)
(* A process asks Redis for a lock with an acquire. Redis makes it the     *)
(* owner, or queues it. A release makes the first of the queue the owner,  *)
(* and sends a message to its process. The owner has a lease, which it     *)
(* renews. docs/protocol.md tells the same in words; the comments name its *)
(* rules. latchkey.cfg bounds what may happen. Each Bug but "none" ends in *)
(* a violation.                                                            *)
(*                                                                         *)
(* Left out: hand-offs inside a process (it has one goroutine here),       *)
(* attempts that do not wait, ForceUnlock, a Redis that loses its data,    *)
(* and clocks that drift. internal/test/model has all of these but the last.    *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Clients,    \* processes
    Tenures,    \* how often each of them asks for the lock
    Lease,      \* ticks that an owner has from an acquire, or a renewal
    Short,      \* ticks that it has from a grant by message (rule 5)
    Block,      \* tokens that are reserved beside the first one (rule 13)
    Ticks,      \* how many pass
    LostReplies, LateCopies, Cuts, Crashes, Cancels,   \* how many may happen
    Bug,        \* what is done wrong; "none" if nothing is
    None

Ids == Clients \X (1..Tenures)          \* An id is for one tenure (rule 2).
Client(t) == t[1]
ASSUME Short <= Lease

Faults == [tick |-> Ticks, reply |-> LostReplies, copy |-> LateCopies, cut |-> Cuts, crash |-> Crashes,
           cancel |-> Cancels]

VARIABLES
    redis,      \* owner, its first token, ticks left of its lease, the last token reserved, the queue
    tenure,     \* of each id: what its process knows
    commands,   \* sent, and not run by Redis. Those of one id run in the order in which they were sent
    late,       \* copies of commands whose connection broke: each runs at some time, or never
    replies,    \* sent by Redis, and not read
    inbox,      \* of each client: the messages that it has not read
    link,       \* of each client: its subscription
    ask,        \* ids of waiters that have a question to ask
    alive,      \* clients that have not crashed
    left,       \* faults that may still happen
    seen        \* the greatest token that was a hold, and whether each one was greater than those before

vars == <<redis, tenure, commands, late, replies, inbox, link, ask, alive, left, seen>>

\* What a tenure is, in the order in which it is so:
\*   new, waiting, held, parked (unlocked, and kept: rule 40), ending (its release is on its way), over.
\* It has tokens from `token`, of which `used` were holds, trusts that it is the owner for `trust` ticks,
\* and parks if it has heard all the while whether others want the lock, and they do not: `keep`. It is
\* `loose` if a copy of one of its acquires may be under way.
Fresh == [phase |-> "new", token |-> 0, used |-> 0, trust |-> 0, keep |-> FALSE, loose |-> FALSE]

Is(t, phases) == tenure[t].phase \in phases
Owns(t) == Is(t, {"held", "parked"})
Waiting == {t \in Ids : Is(t, {"waiting"}) /\ Client(t) \in alive}
Send(op, t) == [op |-> op, id |-> t, age |-> 0]
Out(op, t) == \E c \in commands : c.op = op /\ c.id = t
Same(t, u) == t = u \/ (Bug = "an id for all tenures of a client" /\ u # None /\ Client(t) = Client(u))

Init ==
    /\ redis = [owner |-> None, token |-> 0, lease |-> 0, count |-> 0, queue |-> <<>>]
    /\ tenure = [t \in Ids |-> Fresh]
    /\ commands = {} /\ late = {} /\ replies = {} /\ ask = {}
    /\ inbox = [c \in Clients |-> <<>>]
    /\ link = [c \in Clients |-> "up"]
    /\ alive = Clients
    /\ left = Faults
    /\ seen = [last |-> 0, grew |-> TRUE]

-----------------------------------------------------------------------------
\* The scripts. Redis runs each in one step. A script replies [redis, says, token, others, messages].

Without(t, q) == SelectSeq(q, LAMBDA u : ~Same(t, u))
Queued(t, q) == \E n \in 1..Len(q) : Same(t, q[n])

Own(r, t, ticks) == [r EXCEPT !.owner = t, !.lease = ticks,
    !.token = IF Bug = "a token is used twice" /\ r.count > 0 THEN r.count ELSE r.count + 1,
    !.count = r.count + 1 + (IF Bug = "no token is reserved" THEN 0 ELSE Block)]

Free(r) == [r EXCEPT !.owner = None, !.lease = 0, !.token = 0]

Granted(r) == [kind |-> "granted", id |-> r.owner, token |-> r.token, others |-> r.queue # <<>>, age |-> 0]
Want(t) == [kind |-> "want", id |-> t, token |-> 0, others |-> TRUE, age |-> 0]

\* Grant gives a lock that is free to the first in the queue whose inbox has a subscriber, or is the caller's.
RECURSIVE Grant(_, _)
Grant(r, self) ==
    IF r.queue = <<>> THEN [redis |-> r, messages |-> <<>>]
    ELSE LET t == Head(r.queue)
             q == [r EXCEPT !.queue = Tail(@)]
         IN IF t = self THEN [redis |-> Own(q, t, Lease), messages |-> <<>>]
            ELSE IF link[Client(t)] = "down" THEN Grant(q, self)
            ELSE LET o == Own(q, t, Short) IN [redis |-> o, messages |-> <<Granted(o)>>]

Yours(r, messages) == [redis |-> r, says |-> "yours", token |-> r.token, others |-> r.queue # <<>>,
    messages |-> messages]
Says(r, says, messages) == [redis |-> r, says |-> says, token |-> 0, others |-> FALSE, messages |-> messages]

\* lock/acquire takes a lock that is free and has no waiters, or queues. It grants a free lock (rule 1).
Acquire(t) ==
    IF redis.owner # None /\ Same(t, redis.owner)
        THEN Yours([redis EXCEPT !.lease = Lease, !.owner = t], <<>>)
    ELSE IF redis.owner = None /\ redis.queue = <<>> THEN Yours(Own(redis, t, Lease), <<>>)
    ELSE LET new == ~Queued(t, redis.queue)
             r   == IF new THEN [redis EXCEPT !.queue = Append(@, t)] ELSE redis
             w   == IF new /\ Len(r.queue) = 1 /\ Bug # "nobody says that others want the lock"
                        THEN <<Want(redis.owner)>> ELSE <<>>
         IN IF r.owner # None THEN Says(r, "queued", w)
            ELSE IF Bug = "an acquire grants nobody else a free lock" THEN Says(r, "queued", <<>>)
            ELSE LET g == Grant(r, t) IN
                 IF g.redis.owner = t THEN Yours(g.redis, g.messages) ELSE Says(g.redis, "queued", g.messages)

\* lock/renew makes the lease whole.
Renew(t) ==
    IF redis.owner # None /\ Same(t, redis.owner)
        THEN Says([redis EXCEPT !.lease = Lease], "renewed", <<>>)
        ELSE Says(redis, "nothing", <<>>)

\* lock/release ends an id: what it owns, and where it is queued. It is also the cancel of a waiter.
Release(t) ==
    LET r == [redis EXCEPT !.queue = Without(t, @)]
        mine == r.owner # None /\ (Same(t, r.owner) \/ Bug = "a release does not look at the owner")
    IN IF mine \/ r.owner = None
       THEN IF mine /\ Bug = "a release grants nobody" THEN Says(Free(r), "done", <<>>)
            ELSE LET g == Grant(Free(r), None) IN Says(g.redis, "done", g.messages)
       ELSE Says(r, "done", <<>>)

Script(c) == CASE c.op = "acquire" -> Acquire(c.id)
               [] c.op = "renew"   -> Renew(c.id)
               [] c.op = "release" -> Release(c.id)

\* A message reaches a client that is subscribed. One that is deaf is gone, and Redis does not know it yet.
Delivered(messages) ==
    IF messages = <<>> THEN inbox
    ELSE LET m == Head(messages) IN
         IF m.id # None /\ link[Client(m.id)] = "up" THEN [inbox EXCEPT ![Client(m.id)] = Append(@, m)] ELSE inbox

\* What follows from the answer "queued", or none, is at once: nothing depends on when the process hears it.
\* A release is repeated while a copy of an acquire may come, and once more (rule 2).
Again(c, lost) ==
    \/ lost /\ (c.op = "acquire" => c.id \in Waiting)
    \/ c.op = "release" /\ tenure[c.id].loose /\ Bug # "a release is not repeated"
Copies(t) == \E c \in late : c.op = "acquire" /\ c.id = t

\* Run: Redis runs a command, and replies. If the reply is lost, the client sends the command again, unless its
\* caller has gone.
Run(c, lost) ==
    /\ ~(c.op = "release" /\ Out("acquire", c.id))
    /\ LET a == Script(c)
           told == ~lost /\ a.says \in {"yours", "renewed"}
           asks == c.op = "acquire" /\ ~lost /\ ~told /\ c.id \in ask
       IN /\ redis' = a.redis
          /\ inbox' = Delivered(a.messages)
          /\ commands' = (IF Again(c, lost) THEN commands ELSE commands \ {c}) \cup
                 (IF asks THEN {Send("acquire", c.id)} ELSE {})
          /\ replies' = IF ~told THEN replies ELSE replies \cup
                 {[op |-> c.op, id |-> c.id, token |-> a.token, others |-> a.others, age |-> c.age]}
          /\ ask' = IF asks THEN ask \ {c.id} ELSE ask
          /\ tenure' = IF c.op # "release" \/ lost THEN tenure
                       ELSE IF Again(c, lost) THEN [tenure EXCEPT ![c.id].loose = Copies(c.id)]
                       ELSE [tenure EXCEPT ![c.id] = [Fresh EXCEPT !.phase = "over"]]
    /\ left' = IF lost THEN [left EXCEPT !.reply = @ - 1] ELSE left
    /\ UNCHANGED <<late, link, alive, seen>>

\* RunLate: a copy arrives after all. Nobody reads its reply.
RunLate(c) ==
    /\ LET a == Script(c) IN redis' = a.redis /\ inbox' = Delivered(a.messages)
    /\ late' = late \ {c}
    /\ UNCHANGED <<tenure, commands, replies, link, ask, alive, left, seen>>

-----------------------------------------------------------------------------
\* What a process does by itself.

\* Lock: a goroutine asks for the lock. No other one of its process waits for it or has it.
Lock(t) ==
    /\ Client(t) \in alive /\ Is(t, {"new"})
    /\ \A u \in Ids : Client(u) = Client(t) =>
           (u[2] < t[2] => Is(u, {"ending", "over"})) /\ (u[2] > t[2] => Is(u, {"new"}))
    /\ tenure' = [tenure EXCEPT ![t] = [Fresh EXCEPT !.phase = "waiting", !.keep = link[Client(t)] = "up"]]
    /\ commands' = commands \cup {Send("acquire", t)}
    /\ UNCHANGED <<redis, late, replies, inbox, link, ask, alive, left, seen>>

\* Waiters ask again with an acquire of the same id, once the one before was answered.
Unanswered(t) == Out("acquire", t) \/ \E r \in replies : r.op = "acquire" /\ r.id = t
AskAgain(ts, sent) ==
    /\ commands' = sent \cup {Send("acquire", t) : t \in {u \in ts : ~Unanswered(u)}}
    /\ ask' = ask \cup {t \in ts : Unanswered(t)}

\* SendRenewal: an owner renews its lease while it trusts it.
SendRenewal(t) ==
    /\ Client(t) \in alive /\ Owns(t) /\ tenure[t].trust < Lease
    /\ ~Out("renew", t) /\ ~\E r \in replies : r.op = "renew" /\ r.id = t
    /\ commands' = commands \cup {Send("renew", t)}
    /\ UNCHANGED <<redis, tenure, late, replies, inbox, link, ask, alive, left, seen>>

Ended(t) == [Fresh EXCEPT !.phase = "ending", !.loose = tenure[t].loose]
End(t) == /\ tenure' = [tenure EXCEPT ![t] = Ended(t)]
          /\ commands' = IF Out("release", t) THEN commands ELSE commands \cup {Send("release", t)}

\* Unlock: a hold ends, and its release is sent.
Unlock(t) ==
    /\ Client(t) \in alive /\ Is(t, {"held"})
    /\ End(t)
    /\ UNCHANGED <<redis, late, replies, inbox, link, ask, alive, left, seen>>

\* Park: a hold ends, and the process keeps the lock, as nobody else wants it (rule 40).
Park(t) ==
    /\ Client(t) \in alive /\ Is(t, {"held"})
    /\ tenure[t].used < Block + 1 /\ Block > 0
    /\ tenure[t].keep \/ Bug = "it parks what it could not hear of"
    /\ tenure' = [tenure EXCEPT ![t].phase = "parked"]
    /\ UNCHANGED <<redis, commands, late, replies, inbox, link, ask, alive, left, seen>>

Began(token) == [last |-> IF token > seen.last THEN token ELSE seen.last,
                 grew |-> seen.grew /\ token > seen.last]

\* Unpark: the next goroutine of the process goes on with what is parked. Redis does not hear of it.
Unpark(t) ==
    /\ Client(t) \in alive
    /\ Is(t, {"parked"}) \/ (Bug = "what is given up is taken again" /\ Is(t, {"ending"}) /\ Out("release", t))
    /\ tenure[t].used <= Block
    /\ tenure' = [tenure EXCEPT ![t].phase = "held", ![t].used = @ + 1,
           ![t].trust = IF Is(t, {"parked"}) THEN @ ELSE Lease]
    /\ seen' = Began(tenure[t].token + tenure[t].used)
    /\ UNCHANGED <<redis, commands, late, replies, inbox, link, ask, alive, left>>

\* GiveUp: a parked tenure ends after some time, or as the subscription was lost.
GiveUp(t) ==
    /\ Client(t) \in alive /\ Is(t, {"parked"})
    /\ End(t)
    /\ UNCHANGED <<redis, late, replies, inbox, link, ask, alive, left, seen>>

\* Cancel: the context of a waiter ends.
Cancel(t) ==
    /\ left.cancel > 0 /\ left' = [left EXCEPT !.cancel = @ - 1]
    /\ t \in Waiting
    /\ End(t)
    /\ UNCHANGED <<redis, late, replies, inbox, link, ask, alive, seen>>

-----------------------------------------------------------------------------
\* What a process reads.

Hold(t, token, trust, keep) ==
    /\ tenure' = [tenure EXCEPT ![t] = [tenure[t] EXCEPT !.phase = "held", !.token = token, !.used = 1,
           !.trust = trust, !.keep = @ /\ keep]]
    /\ seen' = Began(token)

\* How many ticks a lease leaves that was granted so long ago. Age counts from before the command was sent, or from
\* the grant: never from the moment at which a process reads of it (rule 3).
Rest(ticks, age) ==
    IF Bug = "trust counts from the reply" THEN ticks ELSE IF age >= ticks THEN 0 ELSE ticks - age

\* ReadReply: the lock was taken, or its lease renewed.
ReadReply(r) ==
    /\ Client(r.id) \in alive
    /\ replies' = replies \ {r}
    /\ LET rest == Rest(Lease, r.age) IN
       CASE r.op = "acquire" /\ Is(r.id, {"waiting"}) /\ rest > 0 ->
              Hold(r.id, r.token, rest, ~r.others) /\ UNCHANGED commands /\ ask' = ask \ {r.id}
         [] r.op = "acquire" /\ Is(r.id, {"waiting"}) /\ rest = 0 ->
              /\ commands' = commands \cup {Send("acquire", r.id)} /\ ask' = ask \ {r.id}
              /\ UNCHANGED <<tenure, seen>>
         [] r.op = "renew" /\ Owns(r.id) ->
              /\ tenure' = [tenure EXCEPT ![r.id].trust = IF rest > @ THEN rest ELSE @]
              /\ UNCHANGED <<commands, ask, seen>>
         [] OTHER -> UNCHANGED <<tenure, commands, ask, seen>>
    /\ UNCHANGED <<redis, late, inbox, link, alive, left>>

\* ReadMessage: the lock was granted, or somebody wants it. A grant for a tenure that is over is given back
\* (rule 3).
ReadMessage(c) ==
    /\ c \in alive /\ inbox[c] # <<>>
    /\ inbox' = [inbox EXCEPT ![c] = Tail(@)]
    /\ LET m == Head(inbox[c])
           t == m.id
           trust == IF Bug = "a grant is believed however old it is" THEN Short ELSE Rest(Short, m.age)
       IN CASE m.kind = "granted" /\ Is(t, {"waiting"}) ->
                 IF trust > 0 THEN Hold(t, m.token, trust, ~m.others) /\ UNCHANGED <<commands, ask>>
                 ELSE AskAgain({t}, commands) /\ UNCHANGED <<tenure, seen>>
            [] m.kind = "granted" /\ Is(t, {"ending", "over"}) ->
                 End(t) /\ UNCHANGED <<ask, seen>>
            [] m.kind = "want" /\ Is(t, {"parked"}) /\ Bug # "what is parked does not listen" ->
                 End(t) /\ UNCHANGED <<ask, seen>>
            [] m.kind = "want" /\ Is(t, {"waiting", "held"}) ->
                 tenure' = [tenure EXCEPT ![t].keep = FALSE] /\ UNCHANGED <<commands, ask, seen>>
            [] OTHER -> UNCHANGED <<tenure, commands, ask, seen>>
    /\ UNCHANGED <<redis, late, replies, link, alive, left>>

-----------------------------------------------------------------------------
\* Time. A lease that ends is Redis' own doing (PEXPIRE). A hold whose trust ends is over in the same tick.

\* How old a release is, or a Want, is of no interest.
Aged(x, dated) == IF dated /\ x.age < Lease THEN [x EXCEPT !.age = @ + 1] ELSE x
Older(set) == {Aged(x, x.op # "release") : x \in set}
OlderInbox(q) == [n \in 1..Len(q) |-> Aged(q[n], q[n].kind = "granted")]

Tick ==
    /\ left.tick > 0 /\ left' = [left EXCEPT !.tick = @ - 1]
    /\ redis.lease > 0
    /\ LET ends == redis.lease = 1
           lapsed == {t \in Ids : Owns(t) /\ Client(t) \in alive /\ tenure[t].trust = 1
                         /\ Bug # "a hold goes on after its trust"}
       IN /\ redis' = IF redis.lease <= 1 THEN Free(redis) ELSE [redis EXCEPT !.lease = @ - 1]
          /\ tenure' = [t \in Ids |-> IF t \in lapsed THEN Ended(t)
                                      ELSE IF Owns(t) /\ tenure[t].trust > 1 THEN [tenure[t] EXCEPT !.trust = @ - 1]
                                      ELSE tenure[t]]
          \* Waiters know when a lease ends, at most (rule 7).
          /\ AskAgain(IF ends THEN Waiting ELSE {}, Older(commands) \cup {Send("release", t) : t \in lapsed})
          /\ replies' = Older(replies)
          /\ inbox' = [c \in Clients |-> OlderInbox(inbox[c])]
    /\ UNCHANGED <<late, link, alive, seen>>

-----------------------------------------------------------------------------
\* What goes wrong.

\* Break: the connection breaks before Redis ran it. The client sends it again, and a copy is under way.
Break(c) ==
    /\ left.copy > 0 /\ left' = [left EXCEPT !.copy = @ - 1]
    /\ late' = late \cup {[c EXCEPT !.age = 0]}
    /\ tenure' = IF c.op = "acquire" THEN [tenure EXCEPT ![c.id].loose = TRUE] ELSE tenure
    /\ UNCHANGED <<redis, commands, replies, inbox, link, ask, alive, seen>>

\* NeverArrives: such a copy is gone.
NeverArrives(c) ==
    /\ late' = late \ {c}
    /\ UNCHANGED <<redis, tenure, commands, replies, inbox, link, ask, alive, left, seen>>

\* Cut: a subscription breaks with what is under way. Redis knows it ("down"), or does not yet ("deaf").
Cut(c, how) ==
    /\ left.cut > 0 /\ left' = [left EXCEPT !.cut = @ - 1]
    /\ c \in alive /\ link[c] = "up"
    /\ link' = [link EXCEPT ![c] = how]
    /\ inbox' = [inbox EXCEPT ![c] = <<>>]
    /\ UNCHANGED <<redis, tenure, commands, late, replies, ask, alive, seen>>

\* Reconnect: the client subscribes again. What is parked was given up, what is held will be, and all waiters
\* have a question (rule 4).
Reconnect(c) ==
    /\ c \in alive /\ link[c] # "up"
    /\ Bug = "it parks what it could not hear of" \/ ~\E t \in Ids : Client(t) = c /\ Is(t, {"parked"})
    /\ link' = [link EXCEPT ![c] = "up"]
    /\ tenure' = [t \in Ids |-> IF Client(t) = c THEN [tenure[t] EXCEPT !.keep = FALSE] ELSE tenure[t]]
    /\ AskAgain(IF Bug = "nobody asks after a new subscription" THEN {} ELSE {t \in Waiting : Client(t) = c}, commands)
    /\ UNCHANGED <<redis, late, replies, inbox, alive, left, seen>>

\* Crash: a process ends. What it has sent may arrive.
Crash(c) ==
    /\ left.crash > 0 /\ left' = [left EXCEPT !.crash = @ - 1]
    /\ c \in alive /\ alive' = alive \ {c}
    /\ link' = [link EXCEPT ![c] = "down"]
    /\ inbox' = [inbox EXCEPT ![c] = <<>>]
    /\ late' = late \cup {[x EXCEPT !.age = 0] : x \in {y \in commands : Client(y.id) = c}}
    /\ commands' = {x \in commands : Client(x.id) # c}
    /\ replies' = {r \in replies : Client(r.id) # c}
    /\ tenure' = [t \in Ids |-> IF Client(t) = c THEN [Fresh EXCEPT !.phase = "over"] ELSE tenure[t]]
    /\ ask' = {t \in ask : Client(t) # c}
    /\ UNCHANGED <<redis, seen>>

Next ==
    \/ Tick
    \/ \E c \in commands : Run(c, FALSE) \/ (left.reply > 0 /\ Run(c, TRUE)) \/ Break(c)
    \/ \E c \in late : RunLate(c) \/ NeverArrives(c)
    \/ \E r \in replies : ReadReply(r)
    \/ \E t \in Ids : Lock(t) \/ SendRenewal(t) \/ Unlock(t) \/ Park(t) \/ Unpark(t) \/ GiveUp(t)
                      \/ Cancel(t)
    \/ \E c \in Clients : ReadMessage(c) \/ Cut(c, "down") \/ Cut(c, "deaf") \/ Reconnect(c) \/ Crash(c)

Symmetry == Permutations(Clients)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
\* What must be true in every state.

\* No two hold.
Exclusion == \A t, u \in Ids : Owns(t) /\ Owns(u) => t = u

\* What a process trusts is so in Redis.
Trust == \A t \in Ids : Owns(t) => redis.owner = t /\ redis.lease >= tenure[t].trust

\* Tokens grow from hold to hold.
Tokens == seen.grew

\* When nothing is under way, and all are connected:
Quiet == /\ commands = {} /\ late = {} /\ replies = {} /\ ask \cap Waiting = {}
         /\ \A c \in alive : inbox[c] = <<>> /\ link[c] = "up"
         /\ \A t \in Ids : ~Is(t, {"ending"})

\* ... a waiter is in the queue, behind one that holds, or whose process crashed and whose lease runs;
Woken == Quiet => \A t \in Waiting :
    /\ Queued(t, redis.queue)
    /\ redis.owner # None
    /\ Is(redis.owner, {"held"}) \/ Client(redis.owner) \notin alive

\* ... and nothing is in Redis for nobody.
Clean == Quiet =>
    /\ redis.owner # None /\ Client(redis.owner) \in alive => Owns(redis.owner)
    /\ \A n \in 1..Len(redis.queue) : LET t == redis.queue[n] IN Client(t) \in alive => Is(t, {"waiting"})
=============================================================================
