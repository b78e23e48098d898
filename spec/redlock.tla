------------------------------- MODULE redlock -------------------------------
(***************************************************************************)
(* A lock of latchkey over several servers that share no data: who holds   *)
(* it, and which fencing token.                                            *)
(*                                                                         *)
(* A process asks all servers. The lock is its when a majority has given   *)
(* it a lease, and knows the greatest token that one of these gave. It     *)
(* gives everything back when it fails. docs/protocol.md tells the same in *)
(* words (rules 36 to 38).                                                 *)
(*                                                                         *)
(* Left out: who asks next (rule 39, which is a hint and no right), and    *)
(* clocks that drift.                                                      *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
    Clients,    \* processes
    Tenures,    \* how often each of them asks for the lock
    Servers,
    Lease,      \* ticks that a server grants
    Before,     \* the greatest token that a server may know from before
    Uptime,     \* whether a server counts only when it has been up for a lease (WithUptime)
    Ticks,      \* how many pass
    LostReplies, LateCopies, Crashes, Emptied,   \* how many may happen
    Bug,        \* what is done wrong; "none" if nothing is
    None

Ids == Clients \X (1..Tenures)          \* An id is for one tenure (rule 2).
Client(t) == t[1]
Majorities == {m \in SUBSET Servers : 2 * Cardinality(m) > Cardinality(Servers)}

Faults == [tick |-> Ticks, reply |-> LostReplies, copy |-> LateCopies, crash |-> Crashes, empty |-> Emptied]

VARIABLES
    server,     \* of each: who owns the lock there, ticks left of the lease, its last token, ticks that it is up
    tenure,     \* of each id: its phase, its token, and the servers to which a copy of an attempt may be under way
    part,       \* of each id and server: whether it has that server, with which token, trusted for how many ticks
    commands,   \* sent, and not run
    late,       \* copies of commands whose connection broke: each runs at some time, or never
    replies,    \* sent by a server, and not read
    alive,      \* clients that have not crashed
    left,       \* faults that may still happen
    seen        \* the greatest token that was a hold, and whether each was greater than those before

vars == <<server, tenure, part, commands, late, replies, alive, left, seen>>

Is(t, phases) == tenure[t].phase \in phases
NoPart == [has |-> FALSE, token |-> 0, trust |-> 0]
Max(a, b) == IF a > b THEN a ELSE b

Init ==
    /\ \E known \in [Servers -> 0..Before] :
           server = [s \in Servers |-> [owner |-> None, lease |-> 0, count |-> known[s], up |-> Lease]]
    /\ tenure = [t \in Ids |-> [phase |-> "new", token |-> 0, loose |-> {}]]
    /\ part = [t \in Ids |-> [s \in Servers |-> NoPart]]
    /\ commands = {} /\ late = {} /\ replies = {}
    /\ alive = Clients
    /\ left = Faults
    /\ seen = [last |-> 0, grew |-> TRUE]

-----------------------------------------------------------------------------
\* The scripts. A server runs each in one step.

Counts(s) == ~Uptime \/ server[s].up >= Lease

\* Take gives a free lock to an id, with a token that is greater than any that this server knows, and no smaller
\* than the one that is asked for.
Take(c) == LET r == server[c.at] IN
    IF r.owner = c.id THEN [to |-> [r EXCEPT !.lease = Lease, !.count = Max(@, c.token)], says |-> "yours"]
    ELSE IF r.owner = None /\ Counts(c.at)
         THEN [to |-> [r EXCEPT !.owner = c.id, !.lease = Lease,
                                !.count = IF Bug = "a token is given twice" THEN Max(@, Max(1, c.token))
                                          ELSE Max(@ + 1, c.token)],
               says |-> "yours"]
    ELSE [to |-> r, says |-> "no"]

\* Raise makes an owner's server know its token (rule 36).
Raise(c) == LET r == server[c.at] IN
    IF r.owner = c.id
    THEN [to |-> [r EXCEPT !.count = Max(@, c.token)], says |-> "known"] ELSE [to |-> r, says |-> "no"]

Renew(c) == LET r == server[c.at] IN
    IF r.owner = c.id
    THEN [to |-> [r EXCEPT !.lease = Lease], says |-> "renewed"] ELSE [to |-> r, says |-> "no"]

Give(c) == LET r == server[c.at] IN
    IF r.owner = c.id
    THEN [to |-> [r EXCEPT !.owner = None, !.lease = 0], says |-> "done"] ELSE [to |-> r, says |-> "done"]

Script(c) == CASE c.op = "take" -> Take(c) [] c.op = "raise" -> Raise(c)
               [] c.op = "renew" -> Renew(c) [] c.op = "give" -> Give(c)

\* An attempt that is refused, and a release, have no answer here: nothing depends on when the process hears it.
\* A release is repeated while a copy of what took the lock may come, and once more (rule 2).
Again(c) == c.op = "give" /\ c.at \in tenure[c.id].loose /\ Bug # "a release is not repeated"
MayCome(c) == \E x \in late : x.op = "take" /\ x.id = c.id /\ x.at = c.at
Waits(c) == IF c.op = "take" THEN Is(c.id, {"asking", "held"}) ELSE TRUE

\* Run: a server runs a command, and replies. If the reply is lost, the client sends the command again, unless its
\* caller has gone. Those of one id and server run in the order in which they were sent: a release is the last.
Run(c, lost) ==
    /\ c.op = "give" => ~\E x \in commands : x.op # "give" /\ x.id = c.id /\ x.at = c.at
    /\ LET a == Script(c)
           told == ~lost /\ c.op # "give" /\ ~(c.op = "take" /\ a.says = "no")
       IN /\ server' = [server EXCEPT ![c.at] = a.to]
          /\ commands' = IF lost /\ Waits(c) THEN commands
                         ELSE IF Again(c) THEN commands ELSE commands \ {c}
          /\ tenure' = IF ~lost /\ Again(c) /\ ~MayCome(c) THEN [tenure EXCEPT ![c.id].loose = @ \ {c.at}] ELSE tenure
          /\ replies' = IF ~told THEN replies ELSE replies \cup
                 {[op |-> c.op, id |-> c.id, at |-> c.at, says |-> a.says,
                  token |-> IF c.op = "take" THEN a.to.count ELSE c.token, age |-> c.age]}
    /\ left' = IF lost THEN [left EXCEPT !.reply = @ - 1] ELSE left
    /\ UNCHANGED <<part, late, alive, seen>>

\* RunLate: a copy arrives after all. Nobody reads its reply.
RunLate(c) ==
    /\ server' = [server EXCEPT ![c.at] = Script(c).to]
    /\ late' = late \ {c}
    /\ UNCHANGED <<tenure, part, commands, replies, alive, left, seen>>

-----------------------------------------------------------------------------
\* What a process does.

Send(op, t, s, token) == [op |-> op, id |-> t, at |-> s, token |-> token, age |-> 0]
Out(op, t, s) == \E c \in commands \cup replies : c.op = op /\ c.id = t /\ c.at = s

\* Ask: an attempt asks all servers.
Ask(t) ==
    /\ Client(t) \in alive /\ Is(t, {"new"})
    /\ \A u \in Ids : Client(u) = Client(t) /\ u[2] < t[2] => Is(u, {"ending", "over"})
    /\ tenure' = [tenure EXCEPT ![t].phase = "asking"]
    /\ commands' = commands \cup {Send("take", t, s, 0) : s \in Servers}
    /\ UNCHANGED <<server, part, late, replies, alive, left, seen>>

Has(t) == {s \in Servers : part[t][s].has}
Trusted(t) == {s \in Has(t) : part[t][s].trust > 0}
Token(t) == LET all == {part[t][s].token : s \in Has(t)} IN CHOOSE n \in all : \A m \in all : n >= m
Knowing(t) == IF Has(t) = {} THEN {} ELSE {s \in Trusted(t) : part[t][s].token = Token(t)}
Enough(set) ==
    \/ set \in Majorities
    \/ Bug = "half of the servers are enough" /\ 2 * Cardinality(set) >= Cardinality(Servers) - 1

\* Tell: a server that gave a smaller token than another one is told the greatest.
Tell(t, s) ==
    /\ Client(t) \in alive /\ Is(t, {"asking", "held"}) /\ s \in Has(t)
    /\ part[t][s].token < Token(t) /\ ~Out("raise", t, s)
    /\ commands' = commands \cup {Send("raise", t, s, Token(t))}
    /\ UNCHANGED <<server, tenure, part, late, replies, alive, left, seen>>

\* Hold: a majority is trusted, and knows the token.
Hold(t) ==
    /\ Client(t) \in alive /\ Is(t, {"asking"})
    /\ Enough(IF Bug = "nobody is told the token" THEN Trusted(t) ELSE Knowing(t))
    /\ tenure' = [tenure EXCEPT ![t].phase = "held", ![t].token = Token(t)]
    /\ seen' = [last |-> Max(seen.last, Token(t)), grew |-> seen.grew /\ Token(t) > seen.last]
    /\ UNCHANGED <<server, part, commands, late, replies, alive, left>>

SendRenewal(t, s) ==
    /\ Client(t) \in alive /\ Is(t, {"held"}) /\ s \in Has(t) /\ part[t][s].trust < Lease /\ ~Out("renew", t, s)
    /\ commands' = commands \cup {Send("renew", t, s, 0)}
    /\ UNCHANGED <<server, tenure, part, late, replies, alive, left, seen>>

\* Adopt: a hold takes a server that it has not.
Adopt(t, s) ==
    /\ Client(t) \in alive /\ Is(t, {"held"}) /\ s \notin Has(t) /\ ~Out("take", t, s)
    /\ commands' = commands \cup {Send("take", t, s, tenure[t].token)}
    /\ UNCHANGED <<server, tenure, part, late, replies, alive, left, seen>>

\* Giving back goes to all servers: to one that said nothing, too (rule 37).
Asked(t, s) == Bug # "only what was had is given back" \/ s \in Has(t)
Ending(t) == [tenure EXCEPT ![t].phase = "ending"]
Back(t) == {Send("give", t, s, 0) : s \in {x \in Servers : Asked(t, x)}}

\* End: an attempt fails, a hold is unlocked, or its context ends.
End(t) ==
    /\ Client(t) \in alive /\ Is(t, {"asking", "held"})
    /\ tenure' = Ending(t)
    /\ part' = [part EXCEPT ![t] = [s \in Servers |-> NoPart]]
    /\ commands' = commands \cup Back(t)
    /\ UNCHANGED <<server, late, replies, alive, left, seen>>

\* Trust counts from before the command was sent.
Rest(age) == IF Bug = "trust counts from the reply" THEN Lease ELSE IF age >= Lease THEN 0 ELSE Lease - age

\* Lapsed: fewer than a majority are trusted, and a hold is over (rule 38).
Lapsed(t, parts) == /\ Is(t, {"held"})
                    /\ ~Enough({s \in Servers : parts[t][s].trust > 0})
                    /\ Bug # "a hold goes on when its majority is lost"

\* Now: what is had now, and what ends by that.
Now(parts, sent) ==
    LET over == {t \in Ids : Client(t) \in alive /\ Lapsed(t, parts)} IN
    /\ part' = [t \in Ids |-> IF t \in over THEN [s \in Servers |-> NoPart] ELSE parts[t]]
    /\ tenure' = [t \in Ids |-> IF t \in over THEN [tenure[t] EXCEPT !.phase = "ending"] ELSE tenure[t]]
    /\ commands' = sent \cup UNION {Back(t) : t \in over}

Read(r) ==
    /\ Client(r.id) \in alive
    /\ replies' = replies \ {r}
    /\ CASE r.op = "take" /\ r.says = "yours" /\ Is(r.id, {"asking", "held"}) ->
              Now([part EXCEPT ![r.id][r.at] = [has |-> TRUE, token |-> r.token, trust |-> Rest(r.age)]], commands)
         [] r.op = "raise" /\ r.says = "known" /\ r.at \in Has(r.id) ->
              Now([part EXCEPT ![r.id][r.at].token = Max(@, r.token)], commands)
         [] r.op = "renew" /\ r.says = "renewed" /\ r.at \in Has(r.id) ->
              Now([part EXCEPT ![r.id][r.at].trust = Max(@, Rest(r.age))], commands)
         [] r.op \in {"renew", "raise"} /\ r.says = "no" /\ r.at \in Has(r.id) ->
              Now([part EXCEPT ![r.id][r.at] = NoPart], commands)
         [] OTHER -> Now(part, commands)
    /\ UNCHANGED <<server, late, alive, left, seen>>

\* Over: everything was given back.
Over(t) ==
    /\ Client(t) \in alive /\ Is(t, {"ending"})
    /\ ~\E c \in commands \cup replies : c.id = t
    /\ tenure' = [tenure EXCEPT ![t].phase = "over"]
    /\ UNCHANGED <<server, part, commands, late, replies, alive, left, seen>>

-----------------------------------------------------------------------------
Older(set) == {[x EXCEPT !.age = IF @ < Lease /\ x.op \notin {"raise", "give"} THEN @ + 1 ELSE @] : x \in set}

Tick ==
    /\ left.tick > 0 /\ left' = [left EXCEPT !.tick = @ - 1]
    /\ \E s \in Servers : server[s].lease > 0 \/ server[s].up < Lease
    /\ Now([t \in Ids |-> [s \in Servers |-> [part[t][s] EXCEPT !.trust = IF @ > 0 THEN @ - 1 ELSE 0]]],
           Older(commands))
    /\ server' = [s \in Servers |-> [server[s] EXCEPT
           !.lease = IF @ > 0 THEN @ - 1 ELSE 0,
           !.owner = IF server[s].lease > 1 THEN @ ELSE None,
           !.up = IF @ < Lease THEN @ + 1 ELSE @]]
    /\ replies' = Older(replies)
    /\ UNCHANGED <<late, alive, seen>>

Break(c) ==
    /\ left.copy > 0 /\ left' = [left EXCEPT !.copy = @ - 1]
    /\ late' = late \cup {[c EXCEPT !.age = 0]}
    /\ tenure' = IF c.op = "take" THEN [tenure EXCEPT ![c.id].loose = @ \cup {c.at}] ELSE tenure
    /\ UNCHANGED <<server, part, commands, replies, alive, seen>>

NeverArrives(c) ==
    /\ late' = late \ {c}
    /\ UNCHANGED <<server, tenure, part, commands, replies, alive, left, seen>>

\* Empty: a server is killed, and comes back without its data.
Empty(s) ==
    /\ left.empty > 0 /\ left' = [left EXCEPT !.empty = @ - 1]
    /\ server' = [server EXCEPT ![s] = [owner |-> None, lease |-> 0, count |-> 0, up |-> 0]]
    /\ UNCHANGED <<tenure, part, commands, late, replies, alive, seen>>

Crash(c) ==
    /\ left.crash > 0 /\ left' = [left EXCEPT !.crash = @ - 1]
    /\ c \in alive /\ alive' = alive \ {c}
    /\ late' = late \cup {[x EXCEPT !.age = 0] : x \in {y \in commands : Client(y.id) = c}}
    /\ commands' = {x \in commands : Client(x.id) # c}
    /\ replies' = {r \in replies : Client(r.id) # c}
    /\ tenure' = [t \in Ids |-> IF Client(t) = c THEN [tenure[t] EXCEPT !.phase = "over"] ELSE tenure[t]]
    /\ part' = [t \in Ids |-> IF Client(t) = c THEN [s \in Servers |-> NoPart] ELSE part[t]]
    /\ UNCHANGED <<server, seen>>

Next ==
    \/ Tick
    \/ \E c \in commands : Run(c, FALSE) \/ (left.reply > 0 /\ Run(c, TRUE)) \/ Break(c)
    \/ \E c \in late : RunLate(c) \/ NeverArrives(c)
    \/ \E r \in replies : Read(r)
    \/ \E t \in Ids : Ask(t) \/ Hold(t) \/ End(t) \/ Over(t)
    \/ \E t \in Ids, s \in Servers : Tell(t, s) \/ SendRenewal(t, s) \/ Adopt(t, s)
    \/ \E s \in Servers : Empty(s)
    \/ \E c \in Clients : Crash(c)

Symmetry == Permutations(Clients) \cup Permutations(Servers)
Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
\* No two hold, while no server that counts has lost its data.
Exclusion == \A t, u \in Ids : Is(t, {"held"}) /\ Is(u, {"held"}) => t = u

\* Tokens grow from hold to hold, while no server has lost its data.
Tokens == seen.grew \/ left.empty < Faults.empty

\* When nothing is under way no server is owned by nobody.
Clean == commands = {} /\ replies = {} /\ late = {} =>
    \A s \in Servers : LET t == server[s].owner IN
        t # None /\ Client(t) \in alive => Is(t, {"asking", "held"})
=============================================================================
